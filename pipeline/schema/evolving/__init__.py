"""Rules for the columns and keys of a table after a statement; `pipeline.schema.evolve`
applies them.

They are pure: they ask no server, and raise `CannotFollow` instead of guessing.
"""
