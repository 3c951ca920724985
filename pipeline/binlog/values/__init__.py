"""How each type's bytes become Arrow; one module per family.

Belongs here: a value's bytes as the log stores them → Arrow buffers, in compiled code.
Does not: where in a row event a value lies (`rows`), or which type a column has
(`table_map`).
"""
