-- Writes of batches to mirrors, and the version sets they make.

-- Besides what waits: what a table that is active again missed while the others went on.
-- name: pending
select database, name, array_agg(batch order by batch) as batches from (
    select database, name, batch from lockstep.waiting where source = %(source)s
    union
    select t.database, t.name, s.batch from lockstep.table_states t
    join lockstep.touched s using (source, database, name)
    join lockstep.batches b on b.id = s.batch and b.state in ('captured', 'merged', 'acknowledged')
    where t.source = %(source)s and t.condition in ('active', 'dropped')
      and s.batch >= t.behind_batch
      and not lockstep.covered(t.source, t.database, t.name, s.batch)
) p
group by database, name
order by database, name

-- name: open_intents
select * from lockstep.writes
where source = %(source)s and settled_at is null and given_up_at is null
order by id

-- name: open_intent
insert into lockstep.writes (
    source, token, database, name, app_id, first_batch, last_batch, step
) values (
    %(source)s, %(token)s, %(database)s, %(name)s, %(app_id)s, %(first_batch)s,
    %(last_batch)s, %(step)s
)
returning *

-- name: settle
update lockstep.writes set
    delta_version = %(delta_version)s, settled_at = clock_timestamp(), reason = %(reason)s
where source = %(source)s and id = %(id)s and app_id = %(app_id)s and txn_version = %(txn_version)s
  and delta_version is distinct from %(delta_version)s

-- name: intent_exists
select from lockstep.writes
where source = %(source)s and id = %(id)s and app_id = %(app_id)s and txn_version = %(txn_version)s

-- name: give_up
update lockstep.writes set given_up_at = clock_timestamp()
where source = %(source)s and database = %(database)s and name = %(name)s
  and settled_at is null and given_up_at is null

-- name: settled
select * from lockstep.writes
where source = %(source)s and settled_at is not null
  and %(batch)s between first_batch and last_batch
order by id

-- name: last_settled
select * from lockstep.writes
where source = %(source)s and app_id = %(app_id)s and settled_at is not null
order by delta_version desc limit 1

-- name: last_intended
select coalesce(max(txn_version), 0) as txn_version from lockstep.writes
where source = %(source)s and app_id = %(app_id)s

-- A table is in the set only if its newest segment or event up to the batch is merged by a
-- write that ends there too: a write that goes further shows a later position.
-- name: record_version_set
insert into lockstep.version_sets (source, batch, database, name, mirror, delta_version)
select t.source, %(batch)s, t.database, t.name, t.mirror,
    (array_agg(w.delta_version order by w.id desc))[1]
from lockstep.table_states t
join lockstep.writes w using (source, database, name)
where t.source = %(source)s and t.condition = 'active'
  and w.settled_at is not null and w.last_batch <= %(batch)s
group by t.source, t.database, t.name, t.mirror
having max(w.last_batch) filter (where w.step = 'merge') >= (
    select max(s.batch) from lockstep.touched s
    join lockstep.batches b on b.id = s.batch and b.state <> 'abandoned'
    where (s.source, s.database, s.name) = (t.source, t.database, t.name)
      and s.batch <= %(batch)s
)

-- name: version_set
select * from lockstep.version_sets
where source = %(source)s and batch = %(batch)s
order by database, name
