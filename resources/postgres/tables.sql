-- -- states -----------------------------------------------------------------------------------

-- name: table_states
select * from lockstep.table_states where source = %(source)s order by database, name

-- The newest batch in which a table began again or was followed again. A version with `columns_from`
-- continues the version before it.
-- name: complete_since
select t.database, t.name, max(t.batch) as batch from (
    select database, name, batch from lockstep.table_versions
    where source = %(source)s and knowledge = 'known' and columns_from is null
    union all
    select database, name, batch from lockstep.table_life
    where source = %(source)s and event = 'rejoined'
) t
join lockstep.batches b on b.id = t.batch and b.state <> 'abandoned'
group by t.database, t.name

-- name: partial_tables
select n.* from (
    select distinct on (e.database, e.name) e.* from lockstep.extents e
    join lockstep.batches b on b.id = e.batch and b.state <> 'abandoned'
    where e.source = %(source)s and e.batch <= %(batch)s
    order by e.database, e.name, e.batch desc, e.id desc
) n
left join lockstep.table_states t using (source, database, name)
where n.begins_base is not null
  and (t.condition is distinct from 'dropped' or t.stopped_batch > %(batch)s)
order by n.database, n.name

-- name: record_extents
insert into lockstep.extents (
    source, batch, database, name, begins_base, begins_number, begins_offset,
    empty_base, empty_number, empty_offset
) values %s

-- A table that stops lacks the batches that are not merged by then. One that lacked batches before may
-- lack fewer now.
-- name: note_missing_batches
update lockstep.table_states set missing_since = lockstep.first_unmerged(source, database, name, missing_since)
where source = %(source)s and database = %(database)s and name = %(name)s
  and (condition = 'stopped' or missing_since is not null)

-- name: note_missing_batches_of_source
update lockstep.table_states set missing_since = lockstep.first_unmerged(source, database, name, missing_since)
where source = %(source)s and missing_since is not null

-- Changes that are captured while a table's rows are being read wait for these rows.
-- name: note_missing_batches_of_loading
update lockstep.table_states set missing_since = lockstep.first_unmerged(source, database, name, missing_since)
where source = %(source)s and condition = 'following' and need is not null

-- -- orders -----------------------------------------------------------------------------------

-- An order that is older than its table's need of consent is not that consent.
-- name: open_orders
select o.* from lockstep.placed_orders o
where o.source = %(source)s and o.kind <> 'pause' and o.done_batch is null
  and o.condition = 'stopped'
  and not exists (
      select from lockstep.table_orders n
      where (n.source, n.database, n.name) = (o.source, o.database, o.name) and n.id > o.id)
  and not exists (
      select from lockstep.table_life l left join lockstep.batches b on b.id = l.batch
      where (l.source, l.database, l.name) = (o.source, o.database, o.name)
        and l.event = 'stopped' and l.details ->> 'need' = 'consent' and l.token >= o.token
        and b.state is distinct from 'abandoned')
order by o.id

-- name: order_table
insert into lockstep.table_orders (
    source, token, database, name, kind, author, reason, schema, renames, supplier
) values (
    %(source)s, %(token)s, %(database)s, %(name)s, %(kind)s, %(author)s, %(reason)s, %(schema)s,
    %(renames)s, %(supplier)s
)
returning id

-- name: mark_carried_out
update lockstep.table_orders set done_batch = %(batch)s
where source = %(source)s and id = %(order)s and kind <> 'pause'
returning database, name

-- name: order_by_id
select * from lockstep.placed_orders where source = %(source)s and id = %(order)s

-- -- loads ------------------------------------------------------------------------------------

-- name: order_load
insert into lockstep.loads (source, token, database, name, author, reason)
values (%(source)s, %(token)s, %(database)s, %(name)s, %(author)s, %(reason)s)
returning id

-- name: set_with_past
update lockstep.loads set with_past = %(with_past)s
where source = %(source)s and id = %(load)s and joined_batch is null and void_because is null

-- name: unbegun_load
select id from lockstep.loads
where source = %(source)s and database = %(database)s and name = %(name)s
  and joined_batch is null and void_because is null and schema is null

-- name: open_loads
select * from lockstep.loads
where source = %(source)s and joined_batch is null and void_because is null
order by id

-- name: load_by_id
select * from lockstep.loads where source = %(source)s and id = %(load)s

-- name: load_chunks
select c.*,
       (select json_agg(json_build_array(f.path, f.images, f.size, f.sha256) order by f.ordinal)
        from lockstep.load_files f where (f.load, f.number) = (c.load, c.number)) as files
from lockstep.load_chunks c
where c.load = any(%(loads)s)
order by c.load, c.number

-- name: begin_load
update lockstep.loads set
    schema = %(schema)s, server_uuid = %(server_uuid)s, low_base = %(low_base)s,
    low_number = %(low_number)s, low_offset = %(low_offset)s, estimated_rows = %(estimated_rows)s,
    shape = %(shape)s
where source = %(source)s and id = %(load)s and joined_batch is null and void_because is null

-- name: plan_chunk
insert into lockstep.load_chunks (load, number, after, through)
values (%(load)s, %(number)s, %(after)s, %(through)s)

-- name: record_chunk
update lockstep.load_chunks set
    low_base = %(low_base)s, low_number = %(low_number)s, low_offset = %(low_offset)s,
    high_base = %(high_base)s, high_number = %(high_number)s, high_offset = %(high_offset)s,
    rows = %(rows)s, seconds = %(seconds)s, read_at = clock_timestamp()
where load = %(load)s and number = %(number)s

-- name: record_load_files
insert into lockstep.load_files (load, number, ordinal, path, images, size, sha256) values %s

-- name: void_load
update lockstep.loads set void_because = %(reason)s
where source = %(source)s and id = %(load)s and joined_batch is null

-- name: withdraw_load
update lockstep.loads set void_because = 'the table was paused'
where source = %(source)s and database = %(database)s and name = %(name)s
  and joined_batch is null and void_because is null

-- name: follow_load
update lockstep.loads set
    followed_batch = %(batch)s, followed_sequence = %(sequence)s, followed_version = %(version)s
where source = %(source)s and id = %(load)s and joined_batch is null and void_because is null

-- name: join_load
update lockstep.loads set joined_batch = %(batch)s
where source = %(source)s and id = %(load)s and joined_batch is null and void_because is null

-- -- proofs -----------------------------------------------------------------------------------

-- A difference that was found before the whole table was read again says nothing any more.
-- name: proofs
select * from lockstep.table_proofs p
where source = %(source)s and (differing = 0 or not exists (
    select from lockstep.loads l
    where l.source = p.source and l.database = p.database and l.name = p.name
      and l.joined_batch is not null and l.ordered_at > p.compared_at
))
order by database, name, whole desc

-- An equal sample says nothing about the rows that an earlier sample found different: that difference
-- stays until all rows are found equal or are read again.
-- name: note_compared
insert into lockstep.table_proofs as t (
    source, database, name, whole, compared_at, differing, proven_at, proof, rows,
    at_base, at_number, at_offset, gtid_set
)
select %(source)s, %(database)s, %(name)s, %(whole)s, now, %(differing)s,
       case when %(proof)s::text is null then null else now end, %(proof)s, %(rows)s,
       %(base)s, %(number)s, %(offset)s, %(gtid_set)s
from clock_timestamp() as now
on conflict (source, database, name, whole) do update set
    compared_at = excluded.compared_at,
    differing = excluded.differing,
    proven_at = coalesce(excluded.proven_at, t.proven_at),
    proof = coalesce(excluded.proof, t.proof),
    rows = coalesce(excluded.rows, t.rows),
    at_base = coalesce(excluded.at_base, t.at_base),
    at_number = coalesce(excluded.at_number, t.at_number),
    at_offset = coalesce(excluded.at_offset, t.at_offset),
    gtid_set = coalesce(excluded.gtid_set, t.gtid_set)
where t.whole or t.differing = 0 or excluded.differing > 0
   or exists (
       select from lockstep.table_proofs w
       where w.source = t.source and w.database = t.database and w.name = t.name
         and w.whole and w.differing = 0 and w.compared_at > t.compared_at
   )
   or exists (
       select from lockstep.loads l
       where l.source = t.source and l.database = t.database and l.name = t.name
         and l.joined_batch is not null and l.ordered_at > t.compared_at
   )
