"""Reading all rows of tables from the source (MySQL), in chunks, over as many runs as
it takes."""
