"""The binlog's format: bytes in, whole transactions and decoded rows out.

It opens no socket: functions take bytes and return values, and a search is given the
port from which it asks for bytes. The sources are the MySQL manual's "Replication
Event" pages and the format descriptions in MySQL's `libs/mysql/binlog/event`. Sockets
(`resources.mysql.receiving`) and what a change does to the lake (`pipeline.mirror`) do
not belong here.
"""
