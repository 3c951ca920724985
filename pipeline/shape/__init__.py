"""Shapes: how the lake shows a table, with columns left out, hashed, masked or
converted, and only the rows that a condition takes.

A table's rules in lockstep.toml, the shape to which they resolve for a structure, and
the function that shapes rows belong here. `pipeline.run` calls it, and decides what
happens to a table whose rules change.
"""
