"""Decoders: a column's values as the log stores them → Arrow buffers, in compiled code.

There is one module for each family of types. `rows` finds the place of each value, `table_map` the
type of each column.
"""
