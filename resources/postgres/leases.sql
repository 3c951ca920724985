-- -- the lock and its leases ------------------------------------------------------------------

-- name: source_key
insert into lockstep.sources (name)
select %(source)s where not exists (select from lockstep.sources where name = %(source)s)
on conflict (name) do nothing;
select lock_key from lockstep.sources where name = %(source)s

-- name: try_lock
select pg_try_advisory_lock(%(namespace)s, %(key)s), pg_backend_pid()

-- name: unlock
select pg_advisory_unlock(%(namespace)s, %(key)s)

-- name: take_lease
with taken as (
    update lockstep.sources set token = token + 1, beat_at = clock_timestamp()
    where name = %(source)s
    returning name, token
)
insert into lockstep.leases (source, token, holder, run_id, in_dagster, backend_pid)
select name, token, %(holder)s, %(run_id)s, %(in_dagster)s, %(backend_pid)s from taken
returning token

-- A holder whose source was taken over cannot give its lease back.
-- name: end_lease
update lockstep.leases l set ended_at = clock_timestamp()
from lockstep.sources s
where s.name = %(source)s and s.token = %(token)s and (l.source, l.token) = (s.name, s.token)

-- A heartbeat (`beat_at`) shows that the process lives; only `recorded_at`, the time of the last row
-- that it recorded, shows that it makes progress.
-- name: lease
select l.token, l.holder, l.run_id, l.in_dagster, l.taken_at, s.beat_at,
    l.ended_at is not null as ended, greatest(
    l.taken_at,
    (select max(d.decided_at) from lockstep.decisions d where (d.source, d.token) = (l.source, l.token)),
    (select max(t.recorded_at) from lockstep.table_life t where (t.source, t.token) = (l.source, l.token)),
    (select max(w.intended_at) from lockstep.writes w where (w.source, w.token) = (l.source, l.token)),
    (select max(w.settled_at) from lockstep.writes w
     where (w.source, w.settled_token) = (l.source, l.token)),
    (select max(greatest(c.planned_at, c.read_at)) from lockstep.load_chunks c
     join lockstep.loads o on o.id = c.load
     where o.source = l.source and o.joined_batch is null and o.void_because is null),
    (select max(u.noted_at) from lockstep.upkept u where (u.source, u.token) = (l.source, l.token)),
    (select greatest(b.created_at, b.captured_at, b.merged_at, b.acknowledged_at, b.abandoned_at)
     from lockstep.batches b where b.source = l.source order by b.id desc limit 1)
) as recorded_at, exists (
    select from pg_locks k
    where k.locktype = 'advisory' and k.granted and k.objsubid = 2
      and k.database = (select oid from pg_database where datname = current_database())
      and k.classid = %(namespace)s::oid and k.objid = s.lock_key::oid
      and k.pid = l.backend_pid
) as live
from lockstep.sources s
join lockstep.leases l on l.source = s.name and l.token = s.token
where s.name = %(source)s

-- The newest lease of an earlier run. Nobody holds it any more.
-- name: run_before
select l.token, l.holder, l.run_id, l.in_dagster, l.taken_at, null as beat_at,
    l.ended_at is not null as ended, false as live
from lockstep.leases l
where l.source = %(source)s and l.token < %(token)s and l.run_id is not null
order by l.token desc limit 1

-- After a failover to a standby that lacked the newest leases, another holder may have got a token
-- again, so a token alone does not identify a lease.
-- name: fence
select s.token, l.holder, l.run_id
from lockstep.sources s
left join lockstep.leases l on (l.source, l.token) = (s.name, s.token)
where s.name = %(source)s
for no key update of s

-- name: heartbeat
update lockstep.sources set beat_at = clock_timestamp()
where name = %(source)s and token = %(token)s

-- Changes no row. Refused like any write if the server is read-only or the account may not write.
-- name: write_nothing
update lockstep.sources set beat_at = beat_at where false returning name

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

-- -- clients of a Spark server --------------------------------------------------------------

-- name: spark_clients
select client::text from lockstep.spark_clients where source = %(source)s order by client

-- name: note_spark_client
insert into lockstep.spark_clients (source, client, token)
values (%(source)s, %(client)s, %(token)s)
on conflict (source, client) do nothing

-- name: forget_spark_client
delete from lockstep.spark_clients where source = %(source)s and client = %(client)s

-- -- runs that Dagster does not record -------------------------------------------------------

-- Tokens have no gaps, so leases that are missing were deleted.
-- name: runs_outside_dagster
with span as (
    select * from lockstep.leases
    where source = %(source)s and token > %(after)s and token <= %(through)s
),
-- A run that lost its connection goes on under another lease; the newest says how the run ended.
runs as (
    select distinct on (run_id) in_dagster, ended_at from span
    where run_id is not null
    order by run_id, token desc
)
select (select count(*) from runs where %(all)s or not in_dagster) as runs,
    (select count(*) from runs where not in_dagster and ended_at is null) as died,
    %(through)s - %(after)s - (select count(*) from span) as forgotten,
    array(
        select b.id from lockstep.batches b
        join lockstep.leases o on (o.source, o.token) = (b.source, b.token)
        where b.source = %(source)s and b.token > %(after)s and b.token <= %(through)s
          and (%(all)s or not o.in_dagster) and b.state not in ('capturing', 'abandoned')
        order by b.id
    ) as batches

-- Writes of Dagster's own runs count if the run was killed, because it may not have reported them.
-- name: writes_outside_dagster
select w.*, t.firsts, t.lasts
from (
    select max(s.id) as id, array_agg(s.first_batch) as firsts, array_agg(s.last_batch) as lasts
    from lockstep.writes s
    join lockstep.leases l on (l.source, l.token) = (s.source, s.settled_token)
    where s.source = %(source)s and s.settled_token > %(after)s and s.settled_token <= %(through)s
      and (%(all)s or not l.in_dagster or l.ended_at is null)
      and (s.database collate "C", s.name collate "C") > (%(database)s, %(name)s)
    group by s.database, s.name
    order by s.database collate "C", s.name collate "C"
    limit %(most)s
) t
join lockstep.writes w on w.id = t.id
order by w.database collate "C", w.name collate "C"
