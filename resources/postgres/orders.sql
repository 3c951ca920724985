-- What people order about tables.

-- name: open_orders
select o.id, o.database, o.name, o.kind, o.author, o.reason, o.ordered_at, o.schema, o.renames,
       t.stopped_batch, t.stopped_base, t.stopped_number, t.stopped_offset
from lockstep.table_orders o
join lockstep.table_states t using (source, database, name)
where o.source = %(source)s and o.kind <> 'pause' and o.done_batch is null
  and t.condition in ('quarantined', 'paused')
  and not exists (
      select from lockstep.table_orders n
      where (n.source, n.database, n.name) = (o.source, o.database, o.name) and n.id > o.id)
order by o.id

-- name: order_table
insert into lockstep.table_orders (
    source, token, database, name, kind, author, reason, schema, renames
) values (
    %(source)s, %(token)s, %(database)s, %(name)s, %(kind)s, %(author)s, %(reason)s, %(schema)s,
    %(renames)s
)
returning id

-- name: carry_out
update lockstep.table_orders set done_batch = %(batch)s
where source = %(source)s and id = %(order)s and kind <> 'pause'
returning database, name

-- name: the_order
select o.id, o.database, o.name, o.kind, o.author, o.reason, o.ordered_at, o.schema, o.renames,
       t.stopped_batch, t.stopped_base, t.stopped_number, t.stopped_offset
from lockstep.table_orders o
join lockstep.table_states t using (source, database, name)
where o.source = %(source)s and o.id = %(order)s
