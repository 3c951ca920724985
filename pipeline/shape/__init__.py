"""What a mirror shows of its table: columns left out, hashed, masked and converted, and the rows
that a condition takes.

Belongs here: the rules of one table as lockstep.toml has them, what they come to for a structure,
and the one function that shapes rows. Does not: when rows are shaped (`pipeline.runs`), what
becomes of a table whose rules change (`pipeline.schema.consequences`).
"""
