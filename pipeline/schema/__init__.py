"""Table structures: their types in the lake, and the statements that change them.

The bytes of the log are read in `pipeline.binlog`; what a change means for a table of
the lake is decided in `pipeline.mirror`.
"""
