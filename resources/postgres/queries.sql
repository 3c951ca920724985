-- Every statement of the ledger, by name. Parameters are psycopg2's %(name)s.

-- name: source_key
insert into lockstep.sources (name)
select %(source)s where not exists (select from lockstep.sources where name = %(source)s)
on conflict (name) do nothing;
select lock_key from lockstep.sources where name = %(source)s

-- name: try_lock
select pg_try_advisory_lock(%(namespace)s, %(key)s)

-- name: unlock
select pg_advisory_unlock(%(namespace)s, %(key)s)

-- name: take_lease
with taken as (
    update lockstep.sources set token = token + 1, beat_at = clock_timestamp()
    where name = %(source)s
    returning name, token
)
insert into lockstep.leases (source, token, holder, dagster_run, backend_pid)
select name, token, %(holder)s, %(dagster_run)s, pg_backend_pid() from taken
returning token

-- name: lease
select l.token, l.holder, l.dagster_run, l.taken_at, s.beat_at, exists (
    select from pg_locks k
    where k.locktype = 'advisory' and k.granted and k.objsubid = 2
      and k.database = (select oid from pg_database where datname = current_database())
      and k.classid = %(namespace)s::oid and k.objid = s.lock_key::oid
      and k.pid = l.backend_pid
) as live
from lockstep.sources s
join lockstep.leases l on l.source = s.name and l.token = s.token
where s.name = %(source)s

-- name: fence
select token from lockstep.sources where name = %(source)s for no key update

-- name: beat
update lockstep.sources set beat_at = clock_timestamp()
where name = %(source)s and token = %(token)s

-- A holder without a sign of life loses its connection, and its lock with that.
-- name: end_silent
select pg_terminate_backend(l.backend_pid)
from lockstep.sources s
join lockstep.leases l on l.source = s.name and l.token = s.token
join pg_locks k on k.locktype = 'advisory' and k.granted and k.objsubid = 2
    and k.database = (select oid from pg_database where datname = current_database())
    and k.classid = %(namespace)s::oid and k.objid = s.lock_key::oid and k.pid = l.backend_pid
where s.name = %(source)s
  and s.beat_at < clock_timestamp() - %(silent_seconds)s * interval '1 second'

-- A set is trusted only while every look at the server since found GTIDs on.
-- name: cursor_at
select b.*, b.by_gtid and (s.gtids_off_at > b.captured_at) is not true as resumable, exists (
    select from lockstep.batches o
    where o.source = b.source and o.by_gtid and o.state <> 'abandoned'
) as once
from lockstep.batches b
join lockstep.sources s on s.name = b.source
where b.source = %(source)s and b.state = any(%(states)s)
order by b.id desc limit 1

-- name: batches
select b.*, l.dagster_run, d.continuity from lockstep.batches b
join lockstep.leases l on l.source = b.source and l.token = b.token
left join lockstep.decisions d on d.id = b.start_decision
where b.source = %(source)s
order by b.id desc limit %(limit)s

-- name: unfinished
select b.*, l.dagster_run, d.continuity from lockstep.batches b
join lockstep.leases l on l.source = b.source and l.token = b.token
left join lockstep.decisions d on d.id = b.start_decision
where b.source = %(source)s and b.state in ('capturing', 'captured', 'merged')
order by b.id

-- name: live_batches
select b.*, l.dagster_run, d.continuity from lockstep.batches b
join lockstep.leases l on l.source = b.source and l.token = b.token
left join lockstep.decisions d on d.id = b.start_decision
where b.source = %(source)s and b.state <> 'abandoned' and b.id between %(first)s and %(last)s
order by b.id

-- name: batches_of
select b.*, l.dagster_run, d.continuity from lockstep.batches b
join lockstep.leases l on l.source = b.source and l.token = b.token
left join lockstep.decisions d on d.id = b.start_decision
where b.source = %(source)s and b.state not in ('capturing', 'abandoned')
  and b.id in (
      select t.batch from lockstep.touched t
      where t.source = %(source)s and t.database = %(database)s and t.name = %(name)s)
order by b.id

-- name: overlaps
select b.*, l.dagster_run, d.continuity from lockstep.batches b
join lockstep.leases l on l.source = b.source and l.token = b.token
join lockstep.decisions d on d.id = b.start_decision
where b.source = %(source)s and b.state <> 'abandoned' and d.continuity = 'overlap'
order by b.id

-- name: segments
select s.database, s.name, s.schema_version, s.inserted, s.updated, s.deleted,
       s.first_sequence, s.last_sequence,
       array(select f.path from lockstep.segment_files f where f.segment = s.id
             order by f.ordinal) as paths,
       array(select f.images from lockstep.segment_files f where f.segment = s.id
             order by f.ordinal) as images,
       array(select f.size from lockstep.segment_files f where f.segment = s.id
             order by f.ordinal) as sizes,
       array(select f.sha256 from lockstep.segment_files f where f.segment = s.id
             order by f.ordinal) as digests
from lockstep.segments s
where s.batch = %(batch)s
order by s.id

-- name: source_parts
select f.name,
       array_agg(f.path order by f.ordinal) as paths,
       array_agg(f.images order by f.ordinal) as images,
       array_agg(f.size order by f.ordinal) as sizes,
       array_agg(f.sha256 order by f.ordinal) as digests
from lockstep.source_files f
where f.batch = %(batch)s
group by f.name
order by f.name collate "C"

-- name: table_states
select * from lockstep.table_states where source = %(source)s order by database, name

-- name: partial
select n.* from (
    select distinct on (e.database, e.name) e.* from lockstep.extents e
    join lockstep.batches b on b.id = e.batch and b.state <> 'abandoned'
    where e.source = %(source)s
    order by e.database, e.name, e.batch desc, e.id desc
) n
left join lockstep.table_states t using (source, database, name)
where n.begins_base is not null and t.condition is distinct from 'dropped'
order by n.database, n.name

-- name: record_extents
insert into lockstep.extents (
    source, batch, database, name, begins_base, begins_number, begins_offset,
    empty_base, empty_number, empty_offset
) values %s

-- The history of structures. A version is the newest of a place by (batch, number, offset,
-- version); the state of its batch is asked for row by row, from the newest on, so that the
-- index decides and the number of versions does not matter.

-- name: has_history
select exists (
    select from lockstep.database_versions d
    join lockstep.batches b on b.id = d.batch and b.state <> 'abandoned'
    where d.source = %(source)s
) or exists (
    select from lockstep.table_versions v
    join lockstep.batches b on b.id = v.batch and b.state <> 'abandoned'
    where v.source = %(source)s and v.origin = 'baseline'
) as found

-- name: last_versions
select f.database, f.name, (
    select max(v.version) from lockstep.table_versions v
    where (v.source, v.database, v.name) = (f.source, f.database, f.name)
) as version
from lockstep.table_versions f
where f.source = %(source)s and f.version = 1

-- name: schema_at
select v.* from lockstep.table_versions v
where v.source = %(source)s and v.database = %(database)s and v.name = %(name)s
  and (v.batch, v.since_number, v.since_offset) <= (%(batch)s, %(number)s, %(offset)s)
  and (select b.state from lockstep.batches b where b.id = v.batch) <> 'abandoned'
order by v.batch desc, v.since_number desc, v.since_offset desc, v.version desc limit 1

-- name: schemas_at
select v.* from lockstep.table_versions f
cross join lateral (
    select w.* from lockstep.table_versions w
    where (w.source, w.database, w.name) = (f.source, f.database, f.name)
      and (w.batch, w.since_number, w.since_offset) <= (%(batch)s, %(number)s, %(offset)s)
      and (select b.state from lockstep.batches b where b.id = w.batch) <> 'abandoned'
    order by w.batch desc, w.since_number desc, w.since_offset desc, w.version desc limit 1
) v
where f.source = %(source)s and f.version = 1 and v.knowledge <> 'dropped'
order by v.database collate "C", v.name collate "C"

-- name: referring_schemas
select v.* from lockstep.table_versions f
cross join lateral (
    select w.* from lockstep.table_versions w
    where (w.source, w.database, w.name) = (f.source, f.database, f.name)
      and (select b.state from lockstep.batches b where b.id = w.batch) <> 'abandoned'
    order by w.batch desc, w.since_number desc, w.since_offset desc, w.version desc limit 1
) v
where f.source = %(source)s and f.version = 1 and v.knowledge <> 'dropped'
  and position('"foreign_keys":' in v.schema::text) > 0
order by v.database collate "C", v.name collate "C"

-- name: schema_version
select * from lockstep.table_versions
where source = %(source)s and database = %(database)s and name = %(name)s
  and version = %(version)s

-- name: schema_versions
select v.* from lockstep.table_versions v
join lockstep.batches b on b.id = v.batch and b.state <> 'abandoned'
where v.source = %(source)s and v.database = %(database)s and v.name = %(name)s
order by v.batch, v.since_number, v.since_offset, v.version

-- name: databases_at
select * from (
    select distinct on (d.name) d.* from lockstep.database_versions d
    join lockstep.batches b on b.id = d.batch and b.state <> 'abandoned'
    where d.source = %(source)s
      and (d.batch, d.since_number, d.since_offset) <= (%(batch)s, %(number)s, %(offset)s)
    order by d.name, d.batch desc, d.since_number desc, d.since_offset desc, d.id desc
) newest
where charset is not null
order by name collate "C"

-- name: schema_statements
select s.* from lockstep.schema_statements s
join lockstep.batches b on b.id = s.batch and b.state <> 'abandoned'
where s.source = %(source)s and s.id > %(after)s
order by s.id limit %(limit)s

-- name: statement
select * from lockstep.schema_statements where source = %(source)s and id = %(number)s

-- name: batch_covering
select b.*, l.dagster_run, d.continuity from lockstep.batches b
join lockstep.leases l on l.source = b.source and l.token = b.token
left join lockstep.decisions d on d.id = b.start_decision
where b.source = %(source)s and b.state not in ('capturing', 'abandoned')
  and b.end_server_uuid = %(server_uuid)s and b.start_base = %(base)s and b.end_base = %(base)s
  and (b.start_number, b.start_offset) <= (%(number)s, %(offset)s)
  and (b.end_number, b.end_offset) >= (%(number)s, %(offset)s)
  and b.kind <> 'catching-up'
order by b.id desc limit 1

-- name: table_events
select * from lockstep.table_events
where source = %(source)s and batch = %(batch)s
order by database collate "C", name collate "C", ordinal

-- name: snapshots
select s.database, s.name, s.version, s.low_sequence, s.columns,
       array(select f.path from lockstep.snapshot_files f where f.snapshot = s.id
             order by f.ordinal) as paths,
       array(select f.images from lockstep.snapshot_files f where f.snapshot = s.id
             order by f.ordinal) as images,
       array(select f.size from lockstep.snapshot_files f where f.snapshot = s.id
             order by f.ordinal) as sizes,
       array(select f.sha256 from lockstep.snapshot_files f where f.snapshot = s.id
             order by f.ordinal) as digests
from lockstep.snapshots s
where s.source = %(source)s and s.batch = %(batch)s
order by s.database collate "C", s.name collate "C"

-- name: open_orders
select o.id, o.database, o.name, o.kind, o.author, o.reason, o.ordered_at, o.schema, o.renames,
       t.stopped_batch, t.stopped_base, t.stopped_number, t.stopped_offset
from lockstep.table_orders o
join lockstep.table_states t using (source, database, name)
where o.source = %(source)s and o.kind <> 'pause' and o.done_batch is null
  and not exists (
      select from lockstep.table_orders n
      where (n.source, n.database, n.name) = (o.source, o.database, o.name) and n.id > o.id)
order by o.id

-- name: open_prepared
select * from lockstep.prepared
where source = %(source)s and ended_by is null and not abandoned
order by id

-- name: ended_prepared
select * from lockstep.prepared where ended_by = %(batch)s order by id

-- name: decisions
select * from lockstep.decisions where source = %(source)s order by id desc limit %(limit)s

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
select * from lockstep.gaps where source = %(source)s order by decision

-- What may have closed parts of gaps, in the order of the log: events, and mirrors that went
-- to another table.
-- name: happened_to_tables
select e.database, e.name, e.kind, e.batch, b.acknowledged_at,
       null::text as taker_database, null::text as taker_name, 2 as turn, e.sequence, e.ordinal
from lockstep.table_events e
join lockstep.batches b on b.id = e.batch and b.state = 'acknowledged'
where e.source = %(source)s and e.batch >= %(since)s and e.kind = any(%(kinds)s)
union all
select g.database, g.name, null, g.batch, b.acknowledged_at, t.database, t.name, 1, 0, 0
from lockstep.handovers g
join lockstep.handovers t on t.batch = g.batch and t.mirror = g.before_mirror
join lockstep.batches b on b.id = g.batch and b.state = 'acknowledged'
where g.source = %(source)s and g.batch >= %(since)s
order by batch, turn, sequence, ordinal

-- name: reigns
select since, server_uuid from (
    select id as since, start_server_uuid as server_uuid,
           lag(start_server_uuid) over (order by id) as before
    from lockstep.batches
    where source = %(source)s and state <> 'abandoned'
) b
where before is distinct from server_uuid
order by since

-- name: set_witnesses
select gtid, committed_at, digest from (
    select distinct on (w.origin) w.* from lockstep.set_witnesses w
    join lockstep.batches b on b.id = w.batch and b.state not in ('capturing', 'abandoned')
    where w.source = %(source)s and w.batch <= %(batch)s
    order by w.origin, w.batch desc
) newest
order by batch desc, ordinal

-- name: capture_scopes
select c.batch, c.include, c.exclude, b.start_base, b.start_number, b.start_offset
from lockstep.capture_scopes c
join lockstep.batches b on b.id = c.batch and b.state not in ('capturing', 'abandoned')
where c.source = %(source)s
order by c.batch

-- name: captured_by
select b.*, l.dagster_run, d.continuity from lockstep.batches b
join lockstep.leases l on l.source = b.source and l.token = b.token
left join lockstep.decisions d on d.id = b.start_decision
where b.source = %(source)s and starts_with(l.dagster_run, %(dagster_run)s)
  and b.state not in ('capturing', 'abandoned')
order by b.id desc limit 1

-- name: reaching
select b.*, l.dagster_run, d.continuity from lockstep.batches b
join lockstep.leases l on l.source = b.source and l.token = b.token
left join lockstep.decisions d on d.id = b.start_decision
where b.source = %(source)s and b.state not in ('capturing', 'abandoned')
  and b.end_server_uuid = %(server_uuid)s and b.end_committed_at >= %(moment)s
order by b.id limit 1

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

-- name: settled
select * from lockstep.writes
where source = %(source)s and settled_at is not null
  and %(batch)s between first_batch and last_batch
order by id

-- name: last_settled
select * from lockstep.writes
where source = %(source)s and app_id = %(app_id)s and settled_at is not null
order by delta_version desc limit 1

-- name: renew_mirror
update lockstep.table_states set mirror_generation = mirror_generation + 1, mirror = %(mirror)s,
    mirror_version = null, adopted = null
where source = %(source)s and database = %(database)s and name = %(name)s
returning *

-- name: end_mirror
update lockstep.table_states set generation = generation + 1, mirror_version = null, adopted = null
where source = %(source)s and database = %(database)s and name = %(name)s
  and condition = 'dropped' and mirror_version is not null

-- name: mirror_ended
select from lockstep.table_states
where source = %(source)s and database = %(database)s and name = %(name)s
  and condition = 'dropped'

-- name: version_set
select * from lockstep.version_sets
where source = %(source)s and batch = %(batch)s
order by database, name

-- name: decide
insert into lockstep.decisions (
    source, token, kind, rule, reason, facts, author, follows, continuity, gap_tables, override
) values (
    %(source)s, %(token)s, %(kind)s, %(rule)s, %(reason)s, %(facts)s, %(author)s,
    %(follows)s, %(continuity)s, %(gap_tables)s, %(override)s
)
returning *

-- name: note_gtids_off
update lockstep.sources set gtids_off_at = clock_timestamp() where name = %(source)s

-- name: choose_start
insert into lockstep.overrides (source, token, place, reason, author)
values (%(source)s, %(token)s, %(place)s, %(reason)s, %(author)s)
returning *

-- name: begin_batch
with begun as (
    insert into lockstep.batches (
        source, state, kind, predecessor, start_decision, base, token,
        start_base, start_number, start_offset, start_gtid_set, start_server_uuid,
        start_committed_at
    ) values (
        %(source)s, 'capturing', %(kind)s, %(predecessor)s, %(start_decision)s,
        coalesce((
            select base + changes from lockstep.batches
            where id = coalesce(%(predecessor)s, (
                select follows from lockstep.decisions where id = %(start_decision)s))
        ), 0),
        %(token)s, %(base)s, %(number)s, %(offset)s, %(gtid_set)s, %(server_uuid)s,
        %(committed_at)s
    )
    returning *
)
select b.*, l.dagster_run, d.continuity from begun b
join lockstep.leases l on l.source = b.source and l.token = b.token
left join lockstep.decisions d on d.id = b.start_decision

-- name: batch_captured
update lockstep.batches set
    state = 'captured', captured_at = clock_timestamp(),
    end_base = %(base)s, end_number = %(number)s, end_offset = %(offset)s,
    end_gtid_set = %(gtid_set)s, end_server_uuid = %(server_uuid)s,
    end_committed_at = %(committed_at)s,
    witness_offset = %(witness_offset)s, witness_length = %(witness_length)s,
    witness_crc32 = %(witness_crc32)s, witness_gtid = %(witness_gtid)s,
    witness_file_created = %(witness_file_created)s,
    changes = %(changes)s, transactions = %(transactions)s, log_bytes = %(log_bytes)s,
    by_gtid = %(by_gtid)s,
    server_started_at = %(server_started_at)s, server_resets = %(server_resets)s
where source = %(source)s and id = %(batch)s

-- name: record_versions
insert into lockstep.table_versions (
    source, batch, database, name, version, since_base, since_number, since_offset, knowledge,
    origin, schema, fingerprint, columns_from, statement, reason, generation
) values %s

-- name: record_statements
insert into lockstep.schema_statements (
    source, batch, begin_base, begin_number, begin_offset, end_base, end_number, end_offset,
    gtid, committed_at, database, text, context, outcome, effects
) values %s
returning id

-- name: record_databases
insert into lockstep.database_versions (
    source, batch, name, since_base, since_number, since_offset, charset, collation_name, statement
) values %s

-- A table that is set aside or paused stays so, whatever a capture says of it.
-- name: record_state
insert into lockstep.table_states as t (
    source, database, name, condition, generation, mirror, changelog, reason, hint, position,
    changelog_generation, stopped_batch, stopped_base, stopped_number, stopped_offset, remedy
) values (
    %(source)s, %(database)s, %(name)s, %(condition)s, %(generation)s, %(mirror)s,
    %(changelog)s, %(reason)s, %(hint)s, %(position)s, %(changelog_generation)s,
    %(stopped_batch)s, %(stopped_base)s, %(stopped_number)s, %(stopped_offset)s, %(remedy)s
)
on conflict (source, database, name) do update set
    (condition, reason, hint, position, remedy, stopped_batch, stopped_base, stopped_number,
     stopped_offset) = (
        select k.condition, k.reason, k.hint, k.position, k.remedy, k.batch, k.base, k.number,
               k."offset" from (values
            (t.condition, t.reason, t.hint, t.position, t.remedy,
             t.stopped_batch, t.stopped_base, t.stopped_number, t.stopped_offset, true),
            (excluded.condition, excluded.reason, excluded.hint, excluded.position, excluded.remedy,
             excluded.stopped_batch, excluded.stopped_base, excluded.stopped_number,
             excluded.stopped_offset, false)
        ) k (condition, reason, hint, position, remedy, batch, base, number, "offset", before)
        where k.before = (t.condition in ('quarantined', 'paused'))
    ),
    generation = excluded.generation, mirror = excluded.mirror, changelog = excluded.changelog,
    changelog_generation = excluded.changelog_generation,
    mirror_version = case when excluded.generation = t.generation then t.mirror_version end,
    adopted = case when excluded.generation = t.generation then t.adopted end

-- name: record_handover
insert into lockstep.handovers (
    source, batch, database, name, generation, mirror, delta_version, shows,
    before_generation, before_mirror, before_shows, before_adopted
) values (
    %(source)s, %(batch)s, %(database)s, %(name)s, %(generation)s, %(mirror)s,
    %(delta_version)s, %(shows)s, %(before_generation)s, %(before_mirror)s, %(before_shows)s,
    %(before_adopted)s
);
update lockstep.table_states set mirror_version = %(shows)s, adopted = %(delta_version)s
where source = %(source)s and database = %(database)s and name = %(name)s

-- In a capture `batch` is given, and mostly the place the table stopped at in it; otherwise
-- it stopped where the captures are.
-- name: set_aside
update lockstep.table_states t set
    condition = 'quarantined', reason = %(reason)s, hint = %(hint)s, position = %(position)s,
    remedy = %(remedy)s,
    stopped_batch = c.id, stopped_base = c.base, stopped_number = c.number, stopped_offset = c."offset",
    behind_batch = lockstep.behind(t.source, t.database, t.name, t.behind_batch)
from (select 1) one
left join lateral (
    select id, coalesce(%(base)s, end_base, start_base) as base,
           coalesce(%(number)s, end_number, start_number) as number,
           coalesce(%(offset)s, end_offset, start_offset) as "offset"
    from lockstep.batches
    where source = %(source)s and (id = %(batch)s or %(batch)s is null
        and state in ('captured', 'merged', 'acknowledged'))
    order by id desc limit 1
) c on true
where t.source = %(source)s and t.database = %(database)s and t.name = %(name)s
  and t.condition in ('active', 'dropped')

-- name: table_exists
select from lockstep.table_states
where source = %(source)s and database = %(database)s and name = %(name)s

-- name: order_table
insert into lockstep.table_orders (
    source, token, database, name, kind, author, reason, schema, renames
) values (
    %(source)s, %(token)s, %(database)s, %(name)s, %(kind)s, %(author)s, %(reason)s, %(schema)s,
    %(renames)s
)
returning id

-- An active table stops where the captures are, any other where it had stopped.
-- name: pause
update lockstep.table_states t set
    condition = 'paused', reason = %(reason)s, hint = %(hint)s, remedy = %(remedy)s,
    position = coalesce(t.position, s.base || '.'
        || lpad(s.number::text, greatest(6, length(s.number::text)), '0') || ':' || s."offset",
        'nowhere in the log yet'),
    stopped_batch = s.batch, stopped_base = s.base, stopped_number = s.number,
    stopped_offset = s."offset",
    behind_batch = lockstep.behind(t.source, t.database, t.name, t.behind_batch)
from (
    select k.condition, b.id as batch, b.end_base as base, b.end_number as number,
           b.end_offset as "offset"
    from lockstep.table_states k
    left join lateral (
        select * from lockstep.batches
        where source = k.source and state in ('captured', 'merged', 'acknowledged')
        order by id desc limit 1
    ) b on true
    where k.source = %(source)s and k.database = %(database)s and k.name = %(name)s
      and k.condition = 'active'
    union all
    select k.condition, k.stopped_batch, k.stopped_base, k.stopped_number, k.stopped_offset
    from lockstep.table_states k
    where k.source = %(source)s and k.database = %(database)s and k.name = %(name)s
      and k.condition <> 'active'
) s
where t.source = %(source)s and t.database = %(database)s and t.name = %(name)s
  and (%(anyway)s or s.condition = 'active')

-- name: the_order
select o.id, o.database, o.name, o.kind, o.author, o.reason, o.ordered_at, o.schema, o.renames,
       t.stopped_batch, t.stopped_base, t.stopped_number, t.stopped_offset
from lockstep.table_orders o
join lockstep.table_states t using (source, database, name)
where o.source = %(source)s and o.id = %(order)s

-- name: carry_out
with done as (
    update lockstep.table_orders o set
        done_batch = %(batch)s, stopped_batch = t.stopped_batch, stopped_base = t.stopped_base,
        stopped_number = t.stopped_number, stopped_offset = t.stopped_offset,
        aside_reason = t.reason, aside_hint = t.hint, aside_position = t.position,
        aside_condition = t.condition, aside_remedy = t.remedy
    from lockstep.table_states t
    where o.source = %(source)s and o.id = %(order)s and o.kind <> 'pause'
      and (t.source, t.database, t.name) = (o.source, o.database, o.name)
    returning o.source, o.database, o.name
)
update lockstep.table_states t set
    condition = 'active', reason = null, hint = null, position = null, remedy = null,
    stopped_batch = null, stopped_base = null, stopped_number = null, stopped_offset = null
from done
where (t.source, t.database, t.name) = (done.source, done.database, done.name)

-- name: record_event
insert into lockstep.table_events (
    source, batch, database, name, ordinal, kind, sequence, version, place_base, place_number,
    place_offset, reason
) values (
    %(source)s, %(batch)s, %(database)s, %(name)s, %(ordinal)s, %(kind)s, %(sequence)s,
    %(version)s, %(base)s, %(number)s, %(offset)s, %(reason)s
)

-- name: record_snapshot
insert into lockstep.snapshots (source, batch, database, name, version, low_sequence, columns)
values (%(source)s, %(batch)s, %(database)s, %(name)s, %(version)s, %(low_sequence)s, %(columns)s)
returning id

-- name: record_snapshot_file
insert into lockstep.snapshot_files (snapshot, ordinal, path, images, size, sha256)
values (%(snapshot)s, %(ordinal)s, %(path)s, %(images)s, %(size)s, %(sha256)s)

-- name: record_segment
insert into lockstep.segments (
    source, batch, database, name, schema_version, inserted, updated, deleted,
    first_sequence, last_sequence
) values (
    %(source)s, %(batch)s, %(database)s, %(name)s, %(schema_version)s, %(inserted)s,
    %(updated)s, %(deleted)s, %(first_sequence)s, %(last_sequence)s
)
returning id

-- name: record_file
insert into lockstep.segment_files (segment, ordinal, path, images, size, sha256)
values (%(segment)s, %(ordinal)s, %(path)s, %(images)s, %(size)s, %(sha256)s)

-- name: record_source_file
insert into lockstep.source_files (source, batch, name, ordinal, path, images, size, sha256)
values (
    %(source)s, %(batch)s, %(name)s, %(ordinal)s, %(path)s, %(images)s, %(size)s, %(sha256)s
)

-- name: record_scope
insert into lockstep.capture_scopes (source, batch, include, exclude)
select %(source)s, %(batch)s, %(include)s, %(exclude)s
where not exists (
    select from (
        select c.include, c.exclude from lockstep.capture_scopes c
        join lockstep.batches b on b.id = c.batch and b.state not in ('capturing', 'abandoned')
        where c.source = %(source)s order by c.batch desc limit 1
    ) newest
    where newest.include = %(include)s and newest.exclude = %(exclude)s
)

-- name: record_set_witness
insert into lockstep.set_witnesses (source, batch, ordinal, origin, gtid, committed_at, digest)
values (
    %(source)s, %(batch)s, %(ordinal)s, %(origin)s, %(gtid)s, %(committed_at)s, %(digest)s
)

-- name: record_prepared
insert into lockstep.prepared (
    source, batch, format_id, gtrid, bqual, position, path, images, size, sha256
) values (
    %(source)s, %(batch)s, %(format_id)s, %(gtrid)s, %(bqual)s, %(position)s, %(path)s,
    %(images)s, %(size)s, %(sha256)s
)

-- name: record_end
update lockstep.prepared set ended_by = %(ended_by)s, committed = %(committed)s
where source = %(source)s and batch = %(batch)s
  and format_id = %(format_id)s and gtrid = %(gtrid)s and bqual = %(bqual)s

-- name: abandon
update lockstep.batches set
    state = 'abandoned', abandoned_at = clock_timestamp(), abandoned_because = %(reason)s
where source = %(source)s and id = %(batch)s

-- name: open_intent
insert into lockstep.writes (
    source, token, database, name, app_id, first_batch, last_batch, step
) values (
    %(source)s, %(token)s, %(database)s, %(name)s, %(app_id)s, %(first_batch)s,
    %(last_batch)s, %(step)s
)
returning *

-- name: settle
update lockstep.writes set delta_version = %(delta_version)s, settled_at = clock_timestamp()
where source = %(source)s and id = %(id)s and app_id = %(app_id)s and txn_version = %(txn_version)s
  and delta_version is distinct from %(delta_version)s

-- name: shows
update lockstep.table_states set mirror_version = %(version)s
where source = %(source)s and database = %(database)s and name = %(name)s

-- name: give_up
update lockstep.writes set given_up_at = clock_timestamp()
where source = %(source)s and database = %(database)s and name = %(name)s
  and settled_at is null and given_up_at is null

-- name: intent_exists
select from lockstep.writes
where source = %(source)s and id = %(id)s and app_id = %(app_id)s and txn_version = %(txn_version)s

-- name: mark_merged
update lockstep.batches b set state = 'merged', merged_at = clock_timestamp()
where b.source = %(source)s and b.state = 'captured'
  and not exists (select from lockstep.waiting w where w.batch = b.id)
returning b.id

-- name: acknowledge
update lockstep.batches set state = 'acknowledged', acknowledged_at = clock_timestamp()
where source = %(source)s and id = %(batch)s

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

-- Consumers of the changelog and their deliveries.

-- name: make_consumer
insert into lockstep.consumers (source, name, start_batch)
values (%(source)s, %(name)s, case %(start)s
    when 'latest' then (
        select max(id) from lockstep.batches where source = %(source)s and state = 'acknowledged')
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
select c.source, c.name, c.made_at, c.cursor, (
    select count(*) from lockstep.deliveries d where d.consumer = c.id and d.state = 'out'
) as out, b.behind, b.changes
from (
    select *, lockstep.consumed(id) as cursor from lockstep.consumers
    where source = %(source)s and dropped_at is null
) c
cross join lateral (
    select count(*) as behind, coalesce(sum(b.changes), 0)::bigint as changes
    from lockstep.batches b
    where b.source = c.source and b.state = 'acknowledged' and b.id > coalesce(c.cursor, 0)
) b
order by c.name collate "C"

-- name: deliverable
select b.id, b.changes from lockstep.batches b
where b.source = %(source)s and b.state = 'acknowledged'
  and b.id > lockstep.given(%(consumer)s)
  and not exists (
      select from lockstep.batches u
      where u.source = b.source and u.id < b.id and u.state in ('capturing', 'captured', 'merged'))
order by b.id limit %(limit)s

-- name: deliver
insert into lockstep.deliveries (source, consumer, first_batch, last_batch)
values (%(source)s, %(consumer)s, %(first_batch)s, %(last_batch)s)

-- name: deliveries_out
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

-- name: retention_floor
select coalesce(
    (select min(b.id) from lockstep.batches b
     where b.source = %(source)s and b.state <> 'abandoned' and b.id > held.cursor),
    held.cursor + 1) as floor
from (
    select min(coalesce(lockstep.consumed(c.id), 0)) as cursor from lockstep.consumers c
    where c.source = %(source)s and c.dropped_at is null
) held

-- The ledger and its lake.

-- name: identity
select id::text as id from lockstep.ledger

-- name: looked
select folder, delta_version from lockstep.looked where source = %(source)s order by folder

-- name: note_looked
insert into lockstep.looked (source, folder, delta_version)
values (%(source)s, %(folder)s, %(delta_version)s)
on conflict (source, folder) do update set delta_version = excluded.delta_version

-- name: forget_looked
delete from lockstep.looked where source = %(source)s and folder = %(folder)s

-- name: last_intended
select coalesce(max(txn_version), 0) as txn_version from lockstep.writes
where source = %(source)s and app_id = %(app_id)s

-- name: begin_anew
update lockstep.table_states set generation = generation + 1, mirror_version = null, adopted = null
where source = %(source)s and database = %(database)s and name = %(name)s
  and condition in ('quarantined', 'paused')

-- name: number_above
select setval(pg_get_serial_sequence('lockstep.batches', 'id'),
              greatest(%(batch)s, nextval(pg_get_serial_sequence('lockstep.batches', 'id')))),
       setval('lockstep.txn_versions',
              greatest(%(txn_version)s, nextval('lockstep.txn_versions')))
