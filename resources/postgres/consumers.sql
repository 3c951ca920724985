-- Consumers of the changelog and their deliveries.

-- name: make_consumer
insert into lockstep.consumers (source, name, start_batch)
values (%(source)s, %(name)s, case %(start)s
    when 'latest' then (
        select max(id) from lockstep.batches where source = %(source)s and state = 'acknowledged')
    when 'earliest' then nullif(lockstep.whole_after(%(source)s), 0)
    else %(batch)s end)

-- name: drop_consumer
update lockstep.consumers set
    dropped_at = clock_timestamp(), dropped_by = %(author)s, dropped_because = %(reason)s
where id = %(consumer)s

-- name: lock_consumer
select * from lockstep.consumers
where source = %(source)s and name = %(name)s and dropped_at is null
for no key update

-- name: consumers
select c.source, c.name, c.created_at, c.cursor, (
    select count(*) from lockstep.deliveries d where d.consumer = c.id and d.state = 'out'
) as deliveries_out, b.batches_behind, b.changes_behind
from (
    select *, lockstep.consumed(id) as cursor from lockstep.consumers
    where source = %(source)s and dropped_at is null
) c
cross join lateral (
    select count(*) as batches_behind, coalesce(sum(b.changes), 0)::bigint as changes_behind
    from lockstep.batches b
    where b.source = c.source and b.state = 'acknowledged' and b.id > coalesce(c.cursor, 0)
) b
order by c.name collate "C"

-- name: deliverable
select b.id, b.changes from lockstep.batches b
where b.source = %(source)s and b.state = 'acknowledged'
  and b.id > lockstep.delivered_through(%(consumer)s)
  and not exists (
      select from lockstep.batches u
      where u.source = b.source and u.id < b.id and u.state in ('capturing', 'captured', 'merged'))
order by b.id limit %(limit)s

-- name: deliver
insert into lockstep.deliveries (source, consumer, first_batch, last_batch)
values (%(source)s, %(consumer)s, %(first_batch)s, %(last_batch)s)

-- name: open_deliveries
select d.id, c.source, c.name as consumer,
       f.start_base, f.start_number, f.start_offset, f.start_gtid_set, f.start_server_uuid,
       f.start_committed_at,
       l.end_base, l.end_number, l.end_offset, l.end_gtid_set, l.end_server_uuid,
       l.end_committed_at, w.batches, w.changes, t.databases, t.names
from lockstep.consumers c
join lockstep.deliveries d on d.consumer = c.id and d.state = 'out'
join lockstep.batches f on f.id = d.first_batch
join lockstep.batches l on l.id = d.last_batch
cross join lateral (
    select array_agg(b.id order by b.id) as batches, sum(b.changes)::bigint as changes
    from lockstep.batches b
    where b.source = d.source and b.state = 'acknowledged'
      and b.id between d.first_batch and d.last_batch
) w
cross join lateral (
    select array_agg(s.database order by s.database collate "C", s.name collate "C") as databases,
           array_agg(s.name order by s.database collate "C", s.name collate "C") as names
    from (select distinct database, name from lockstep.segments
          where batch = any(w.batches)) s
) t
where c.source = %(source)s and c.name = %(name)s and c.dropped_at is null
order by d.id

-- name: ack_delivery
update lockstep.deliveries set state = 'acknowledged', ended_at = clock_timestamp()
where consumer = %(consumer)s and id = %(delivery)s

-- name: roll_back_deliveries
update lockstep.deliveries set state = 'rolled back', ended_at = clock_timestamp()
where consumer = %(consumer)s
  and (id = %(delivery)s or state = 'out' and id >= coalesce(%(delivery)s, 0))
returning id
