"""A table that is older than the log, read in chunks: where it is cut, how much at a time.

Belongs here: what is decided of it. Does not: asking a server (`resources.mysql`), what became of
each chunk (`pipeline.runs`).
"""
