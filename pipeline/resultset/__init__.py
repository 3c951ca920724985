"""The rows of a SELECT: packets in, Arrow columns out.

Sans-I/O, like `pipeline.binlog`: pieces of a socket's stream come in, batches go out. Rows are
those of the binary protocol (MySQL manual, "Binary Protocol Resultset Row"), in which a server
sends numbers and moments as they are: it need not print them, nor we read digits, and a FLOAT
comes to the bit.

This is the path that proves the log's decoder, and is proven by it: what bytes mean is written
here a second time, from another page of the manual, and nothing of `pipeline.binlog.values` is
used. Text comes in UTF-8 and members by their names, converted by the server. Shared is only
what has no meaning: loads and stores, how loops are compiled, Arrow's buffers, and the table of
target types (`pipeline.schema.types`). Does not belong here: the statement and the socket
(`resources.mysql`).
"""
