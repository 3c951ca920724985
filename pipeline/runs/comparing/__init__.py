"""MySQL and what Lockstep has of it, held against each other: rows, and histories of structures."""
