-- Loads of tables that are read from the source, and their chunks.

-- name: order_load
insert into lockstep.loads (source, token, database, name, author, reason)
values (%(source)s, %(token)s, %(database)s, %(name)s, %(author)s, %(reason)s)
returning id

-- name: ordered_load
select id from lockstep.loads
where source = %(source)s and database = %(database)s and name = %(name)s
  and joined_batch is null and void is null and schema is null

-- name: open_loads
select * from lockstep.loads
where source = %(source)s and joined_batch is null and void is null
order by id

-- name: the_load
select * from lockstep.loads where source = %(source)s and id = %(load)s

-- name: load_chunks
select c.*,
       array(select f.path from lockstep.load_files f
             where (f.load, f.number) = (c.load, c.number) order by f.ordinal) as paths,
       array(select f.images from lockstep.load_files f
             where (f.load, f.number) = (c.load, c.number) order by f.ordinal) as images,
       array(select f.size from lockstep.load_files f
             where (f.load, f.number) = (c.load, c.number) order by f.ordinal) as sizes,
       array(select f.sha256 from lockstep.load_files f
             where (f.load, f.number) = (c.load, c.number) order by f.ordinal) as digests
from lockstep.load_chunks c
where c.load = any(%(loads)s)
order by c.load, c.number

-- name: begin_load
update lockstep.loads set
    schema = %(schema)s, server_uuid = %(server_uuid)s, low_base = %(base)s,
    low_number = %(number)s, low_offset = %(offset)s, estimated_rows = %(estimated_rows)s
where source = %(source)s and id = %(load)s and joined_batch is null and void is null

-- name: plan_chunk
insert into lockstep.load_chunks (load, number, after, through)
values (%(load)s, %(number)s, %(after)s, %(through)s)

-- name: record_chunk
update lockstep.load_chunks set
    low_base = %(low_base)s, low_number = %(low_number)s, low_offset = %(low_offset)s,
    high_base = %(high_base)s, high_number = %(high_number)s, high_offset = %(high_offset)s,
    rows = %(rows)s, seconds = %(seconds)s
where load = %(load)s and number = %(number)s

-- name: record_load_file
insert into lockstep.load_files (load, number, ordinal, path, images, size, sha256)
values (
    %(load)s, %(number)s, %(ordinal)s, %(path)s, %(images)s, %(size)s, %(sha256)s
)

-- name: void_load
update lockstep.loads set void = %(why)s
where source = %(source)s and id = %(load)s and joined_batch is null

-- name: follow_load
update lockstep.loads set
    followed_batch = %(batch)s, followed_sequence = %(sequence)s, followed_version = %(version)s
where source = %(source)s and id = %(load)s and joined_batch is null and void is null

-- name: join_load
update lockstep.loads set joined_batch = %(batch)s
where source = %(source)s and id = %(load)s and joined_batch is null and void is null
