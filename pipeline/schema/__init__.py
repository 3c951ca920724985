"""Table structures: their types in the lake, and the statements that change them.

Belongs here: MySQL type → Arrow type (`types`), reading DDL (`statements`). Does not: bytes of
the log (`pipeline.binlog`), what a change means to a lake table (`pipeline.changes`).
"""
