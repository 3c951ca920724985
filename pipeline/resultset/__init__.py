"""The rows of a SELECT: packets in, Arrow columns out.

Sans-I/O, like `pipeline.binlog`: pieces of a socket's stream come in, batches go out. The statement
and the socket are in `resources.mysql`. Rows come in the binary protocol (MySQL manual, "Binary
Protocol Resultset Row"): the server need not print numbers and temporal values, nothing has to be
parsed here, and a FLOAT is exact to the bit.

This package and the log's decoder verify each other. So the meaning of bytes is written here a
second time, from another page of the manual, and nothing of `pipeline.binlog.values` is used: the
server converts text to UTF-8 and members to their names. The two share only code without such
knowledge: loads and stores, compilation, Arrow's buffers, and the table of target types
(`pipeline.schema.types`).
"""
