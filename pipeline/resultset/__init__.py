"""The rows of a SELECT: packets in, Arrow columns out.

Sans-I/O, like `pipeline.binlog`: pieces of a socket's stream come in, batches go out.
The statement and the socket are in `resources.mysql`. Rows come in the binary protocol
(MySQL manual, "Binary Protocol Resultset Row"): the server does not print numbers and
temporal values as text, nothing has to be parsed here, and a FLOAT is exact to the bit.

This package and the log's decoder verify each other: the rows of a table, read by
SELECT and read from the log, must be equal. So each type is decoded here a second time,
from another page of the manual, and nothing of `pipeline.binlog.values` is used. The
server converts text to UTF-8, and ENUM and SET values to names. The two share only code
that knows no format: loads and stores, compilation, Arrow's buffers, and the table of
target types (`pipeline.schema.types`).
"""
