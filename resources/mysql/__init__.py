"""MySQL: connections, binlog dumps, the server's facts and structures, consistent
reads.

This is the only package that uses PyMySQL, which does TCP, TLS, authentication, packets
and SQL. `pipeline.binlog` decodes the log.
"""
