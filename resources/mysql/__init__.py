"""MySQL: connections, the binlog dump, the server's facts, consistent reads.

The only room that knows PyMySQL, which does TCP, TLS, authentication, packets and SQL. What the
log's bytes mean is decided in `pipeline.binlog`.
"""
