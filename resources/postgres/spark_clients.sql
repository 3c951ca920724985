-- Processes that may have statements at a server of Spark's.

-- name: spark_clients
select client::text from lockstep.spark_clients where source = %(source)s order by client

-- name: note_spark_client
insert into lockstep.spark_clients (source, client, token)
values (%(source)s, %(client)s, %(token)s)
on conflict (source, client) do nothing

-- name: forget_spark_client
delete from lockstep.spark_clients where source = %(source)s and client = %(client)s
