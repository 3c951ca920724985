"""The binlog's format: bytes in, whole transactions and decoded rows out.

Sans-I/O: every function takes bytes and returns values. The sources are the MySQL
manual's "Replication Event" pages and the format descriptions in MySQL's
`libs/mysql/binlog/event`. Sockets (`resources.mysql.receiving`) and what a change does
to the lake (`pipeline.mirror`) do not belong here.
"""
