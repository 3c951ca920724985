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

-- A batch whose capture does not finish is abandoned by the next run, which then starts from the same
-- choice.
-- name: open_override
select o.* from lockstep.overrides o
where o.source = %(source)s
  and o.id = (select max(id) from lockstep.overrides where source = %(source)s)
  and not exists (
      select from lockstep.decisions d
      join lockstep.batches b on b.start_decision = d.id
          and b.state not in ('capturing', 'abandoned')
      where d.override = o.id
  )

-- name: gaps
select g.* from lockstep.gaps g
where g.source = %(source)s
order by g.decision

-- What may have closed parts of gaps, in the order of the log: events of tables, renames, and
-- comparisons that found a table equal to the source's as of a batch's end.
-- name: closing_events
select e.database, e.name, e.kind, e.batch, b.acknowledged_at,
       null::text as new_database, null::text as new_name, 2 as turn, e.sequence, e.ordinal,
       e.place_number, e.place_offset
from lockstep.table_events e
join lockstep.batches b on b.id = e.batch and b.state = 'acknowledged'
where e.source = %(source)s and e.batch between %(first_batch)s and %(last_batch)s
  and e.kind = any(%(kinds)s)
union all
select e.origin_database, e.origin_name, null, e.batch, b.acknowledged_at, e.database, e.name, 1,
       e.sequence, e.ordinal, e.place_number, e.place_offset
from lockstep.table_events e
join lockstep.batches b on b.id = e.batch and b.state = 'acknowledged'
where e.source = %(source)s and e.batch between %(first_batch)s and %(last_batch)s
  and e.kind = 'copied'
union all
-- An extent without a beginning: the lake has all of the table. A capture also records one for the
-- name of a partial table to which a rename gave another table's rows ('copied'): that closes nothing.
select x.database, x.name, null, x.batch, greatest(b.acknowledged_at, p.proven_at), null, null, 3,
       %(last_batch)s, 0, 0, 0
from lockstep.extents x
join lockstep.batches b on b.id = x.batch and b.state = 'acknowledged'
left join lockstep.table_proofs p
    on p.source = x.source and p.database = x.database and p.name = x.name and p.whole
where x.source = %(source)s and x.batch between %(first_batch)s and %(last_batch)s
  and x.begins_base is null
  and not exists (
      select from lockstep.table_events e
      where e.source = x.source and e.batch = x.batch and e.database = x.database
        and e.name = x.name and e.kind = 'copied'
  )
order by batch, sequence, place_number, place_offset, turn, ordinal
