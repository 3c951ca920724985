-- What many batches have, asked at once.

-- name: batch_times
select id, end_server_uuid as server_uuid, state = 'acknowledged' as acknowledged,
       kind = 'catching-up' as catches_up, transactions, start_committed_at, end_committed_at
from lockstep.batches
where source = %(source)s and state not in ('capturing', 'abandoned')
  and id >= lockstep.pruned_through(%(source)s)
order by id

-- name: first_batches
select t.database, t.name, min(t.batch) as batch from lockstep.touched t
join lockstep.batches b on b.id = t.batch and b.state not in ('capturing', 'abandoned')
where t.source = %(source)s
group by t.database, t.name

-- name: tables_within
select distinct t.database, t.name from lockstep.touched t
join lockstep.batches b on b.id = t.batch and b.state not in ('capturing', 'abandoned')
where t.source = %(source)s and t.batch between %(first)s and %(last)s

-- name: segments_of
select s.batch, s.database, s.name, s.schema_version, s.inserted, s.updated, s.deleted,
       s.first_sequence, s.last_sequence,
       array(select f.path from lockstep.current_files f where f.segment = s.id
             order by f.ordinal) as paths,
       array(select f.images from lockstep.current_files f where f.segment = s.id
             order by f.ordinal) as images,
       array(select f.size from lockstep.current_files f where f.segment = s.id
             order by f.ordinal) as sizes,
       array(select f.sha256 from lockstep.current_files f where f.segment = s.id
             order by f.ordinal) as digests
from lockstep.segments s
join lockstep.batches b on b.id = s.batch and b.state not in ('capturing', 'abandoned')
where s.source = %(source)s and s.database = %(database)s and s.name = %(name)s
  and s.batch between %(first)s and %(last)s
order by s.id

-- name: events_of
select e.* from lockstep.table_events e
join lockstep.batches b on b.id = e.batch and b.state not in ('capturing', 'abandoned')
where e.source = %(source)s and e.database = %(database)s and e.name = %(name)s
  and e.batch between %(first)s and %(last)s
order by e.batch, e.ordinal

-- name: snapshots_of
select s.batch, s.database, s.name, s.version, s.low_sequence, s.columns,
       array(select f.path from lockstep.snapshot_files f where f.snapshot = s.id
             order by f.ordinal) as paths,
       array(select f.images from lockstep.snapshot_files f where f.snapshot = s.id
             order by f.ordinal) as images,
       array(select f.size from lockstep.snapshot_files f where f.snapshot = s.id
             order by f.ordinal) as sizes,
       array(select f.sha256 from lockstep.snapshot_files f where f.snapshot = s.id
             order by f.ordinal) as digests
from lockstep.snapshots s
join lockstep.batches b on b.id = s.batch and b.state not in ('capturing', 'abandoned')
where s.source = %(source)s and s.database = %(database)s and s.name = %(name)s
  and s.batch between %(first)s and %(last)s
order by s.batch

-- What was read from the source is told before an XA transaction.
-- name: told_elsewhere
select batch, case when bool_or(kind = 'source') then 'source' else 'prepared' end as kind from (
    select p.ended_by as batch, 'prepared' as kind from lockstep.prepared p
    where p.source = %(source)s and p.ended_by between %(first)s and %(last)s
      and p.batch < p.ended_by
    union all
    select s.batch, 'source' from lockstep.snapshots s
    where s.source = %(source)s and s.batch between %(first)s and %(last)s
    union all
    select e.batch, 'source' from lockstep.table_events e
    where e.source = %(source)s and e.batch between %(first)s and %(last)s and e.kind in ('reread', 'refreshed')
) told
where exists (
    select from lockstep.batches b
    where b.id = told.batch and b.state not in ('capturing', 'abandoned'))
group by batch

-- name: learnt_within
select distinct v.batch from (
    select source, batch from lockstep.table_versions
    union all
    select source, batch from lockstep.database_versions
) v
join lockstep.batches b on b.id = v.batch and b.state <> 'abandoned'
where v.source = %(source)s and v.batch between %(first)s and %(last)s

-- name: revision_counts
select s.batch, count(distinct r.id) as revisions from lockstep.revisions r
join lockstep.revised_files f on f.revision = r.id
join lockstep.segments s on s.id = f.segment
where r.source = %(source)s and s.batch between %(first)s and %(last)s and r.state = 'settled'
group by s.batch

-- name: rows_within
select c.batch, c.database, c.name, sum(c.inserted) as inserted, sum(c.updated) as updated,
    sum(c.deleted) as deleted, sum(c.images) as images, sum(c.size) as size, sum(c.read) as read
from (
    select s.batch, s.database, s.name, s.inserted, s.updated, s.deleted,
        coalesce(f.images, 0) as images, coalesce(f.size, 0) as size, 0 as read
    from lockstep.segments s
    cross join lateral (
        select sum(x.images) as images, sum(x.size) as size
        from lockstep.current_files x where x.segment = s.id
    ) f
    where s.source = %(source)s and s.batch between %(first)s and %(last)s
    union all
    select p.batch, p.database, p.name, 0, 0, 0, 0, coalesce(f.size, 0), coalesce(f.images, 0)
    from lockstep.snapshots p
    cross join lateral (
        select sum(x.images) as images, sum(x.size) as size
        from lockstep.snapshot_files x where x.snapshot = p.id
    ) f
    where p.source = %(source)s and p.batch between %(first)s and %(last)s
) c
join lockstep.batches b on b.id = c.batch and b.state not in ('capturing', 'abandoned')
group by c.batch, c.database, c.name
having sum(c.images) + sum(c.read) > 0
order by c.batch, c.database collate "C", c.name collate "C"

-- name: events_within
select e.* from lockstep.table_events e
join lockstep.batches b on b.id = e.batch and b.state not in ('capturing', 'abandoned')
where e.source = %(source)s and e.batch between %(first)s and %(last)s
order by e.batch, e.sequence, e.place_number, e.place_offset, e.database collate "C",
    e.name collate "C", e.ordinal

-- name: writes_within
select * from lockstep.writes
where source = %(source)s and settled_at is not null
  and first_batch <= %(last)s and last_batch >= %(first)s
order by id
