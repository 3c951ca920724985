-- What was decided, and what a person chose.

-- name: decide
insert into lockstep.decisions (
    source, token, kind, rule, reason, facts, author, previous_batch, continuity, gap_tables, override,
    recovery, hint, head_base, head_number, head_offset, structures
) values (
    %(source)s, %(token)s, %(kind)s, %(rule)s, %(reason)s, %(facts)s, %(author)s,
    %(previous_batch)s, %(continuity)s, %(gap_tables)s, %(override)s,
    %(recovery)s, %(hint)s, %(base)s, %(number)s, %(offset)s, %(structures)s
)
returning *

-- name: decisions
select * from lockstep.decisions
where source = %(source)s and (%(kinds)s::text[] = '{}' or kind = any(%(kinds)s))
order by id desc
limit %(limit)s

-- name: start_decision
select * from lockstep.decisions where source = %(source)s and id = %(decision)s::bigint

-- name: note_gtids_off
update lockstep.sources set gtids_off_at = clock_timestamp() where name = %(source)s

-- name: choose_start
insert into lockstep.overrides (source, token, place, reason, author)
values (%(source)s, %(token)s, %(place)s, %(reason)s, %(author)s)
returning *

-- name: open_override
select o.* from lockstep.overrides o
where o.source = %(source)s
  and o.id = (select max(id) from lockstep.overrides where source = %(source)s)
  and not exists (
      select from lockstep.decisions d
      join lockstep.batches b on b.start_decision = d.id and b.state <> 'abandoned'
      where d.override = o.id
  )

-- name: gaps
select g.*, b.start_base, b.start_number, b.start_offset, b.start_gtid_set, b.start_server_uuid,
       b.start_committed_at, b.acknowledged_at
from lockstep.gaps g
join lockstep.batches b on b.id = g.batch
where g.source = %(source)s
order by g.decision

-- What may have closed parts of gaps, in the order of the log: events, and rows that went to another
-- name.
-- name: closing_events
select e.database, e.name, e.kind, e.batch, b.acknowledged_at,
       null::text as taker_database, null::text as taker_name, 2 as turn, e.sequence, e.ordinal,
       e.place_number, e.place_offset
from lockstep.table_events e
join lockstep.batches b on b.id = e.batch and b.state = 'acknowledged'
where e.source = %(source)s and e.batch >= %(first_batch)s and e.kind = any(%(kinds)s)
union all
select e.origin_database, e.origin_name, null, e.batch, b.acknowledged_at, e.database, e.name, 1,
       e.sequence, e.ordinal, e.place_number, e.place_offset
from lockstep.table_events e
join lockstep.batches b on b.id = e.batch and b.state = 'acknowledged'
where e.source = %(source)s and e.batch >= %(first_batch)s and e.kind = 'copied'
order by batch, sequence, place_number, place_offset, turn, ordinal
