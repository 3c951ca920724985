"""The binlog's grammar: bytes in, whole transactions out.

Sans-I/O: everything here takes bytes and returns values. The sources are the MySQL
manual's "Replication Event" pages and the format descriptions in MySQL's
`libs/mysql/binlog/event`. Does not belong here: sockets (`resources.mysql.dump`),
what a change means to the lake (`pipeline.changes`).
"""
