"""Parsers of the log's statements, which return the changes that a text describes.

Callers use `read.read_change`. No parser knows a schema: `pipeline.schema.evolve`
resolves omitted character sets and IF EXISTS.
"""
