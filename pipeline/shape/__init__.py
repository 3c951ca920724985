"""Shapes: how a mirror shows its table, with columns left out, hashed, masked or converted, and
only the rows that a condition takes.

The rules of a table as lockstep.toml has them, the shape to which they resolve for a structure, and
the one function that shapes rows belong here. `pipeline.run` calls it, and decides what happens to
a table whose rules change.
"""
