"""Decoders in compiled code: each makes an Arrow array of a column's values as the log
stores them.

There is one module for each family of types. `rows.images` finds the offset of each
value, `rows.table_map` the type of each column.
"""
