"""Statements of the log: their text → what they change, as written.

The face is `read.read_change`. Nothing here knows
a schema: what an omitted character set or an IF EXISTS comes to is `pipeline.schema.evolve`.
"""
