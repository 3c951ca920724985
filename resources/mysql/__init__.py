"""MySQL: connections, the binlog dump, the server's facts, consistent reads.

The only room that knows PyMySQL and mysql-replication. PyMySQL's work: TCP, TLS,
authentication, packets, SQL. mysql-replication's work: the values inside row events,
in `decode` and nowhere else. Ours: everything about the log's stream.
"""
