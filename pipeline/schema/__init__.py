"""Table structures: their types in the lake, and the statements that change them.

`consequences` decides what a change means for a table of the lake; how that table's
columns follow is decided in `pipeline.mirror`. The bytes of the log are read in
`pipeline.binlog`.
"""
