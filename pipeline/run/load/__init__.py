"""Reading tables from the source, chunk by chunk, over as many runs as it takes."""
