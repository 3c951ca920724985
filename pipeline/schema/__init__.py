"""Table structures: their types in the lake, and the statements that change them.

Not here: bytes of the log (`pipeline.binlog`), what a change means to a lake table
(`pipeline.changes`).
"""
