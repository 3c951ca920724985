"""Parsers of the log's statements: from a text to the changes that it asks for.

Callers use `read.read_change`. No parser knows a schema: `pipeline.schema.evolve` resolves omitted
character sets and IF EXISTS.
"""
