"""A table as of a transaction of the past, at a path of its own."""
