-- What batches captured.

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

-- name: segments
select s.database, s.name, s.schema_version, s.inserted, s.updated, s.deleted,
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
where s.batch = %(batch)s
order by s.id

-- name: record_source_file
insert into lockstep.source_files (source, batch, name, ordinal, path, images, size, sha256)
values (
    %(source)s, %(batch)s, %(name)s, %(ordinal)s, %(path)s, %(images)s, %(size)s, %(sha256)s
)

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

-- name: record_event
insert into lockstep.table_events (
    source, batch, database, name, ordinal, kind, sequence, version, place_base, place_number,
    place_offset, reason
) values (
    %(source)s, %(batch)s, %(database)s, %(name)s, %(ordinal)s, %(kind)s, %(sequence)s,
    %(version)s, %(base)s, %(number)s, %(offset)s, %(reason)s
)

-- name: table_events
select * from lockstep.table_events
where source = %(source)s and batch = %(batch)s
order by database collate "C", name collate "C", ordinal

-- name: record_snapshot
insert into lockstep.snapshots (source, batch, database, name, version, low_sequence, columns)
values (%(source)s, %(batch)s, %(database)s, %(name)s, %(version)s, %(low_sequence)s, %(columns)s)
returning id

-- name: record_snapshot_file
insert into lockstep.snapshot_files (snapshot, ordinal, path, images, size, sha256)
values (%(snapshot)s, %(ordinal)s, %(path)s, %(images)s, %(size)s, %(sha256)s)

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

-- name: open_prepared
select * from lockstep.prepared
where source = %(source)s and ended_by is null and not abandoned
order by id

-- name: ended_prepared
select * from lockstep.prepared where ended_by = %(batch)s order by id

-- name: record_set_witness
insert into lockstep.set_witnesses (source, batch, ordinal, origin, gtid, committed_at, digest)
values (
    %(source)s, %(batch)s, %(ordinal)s, %(origin)s, %(gtid)s, %(committed_at)s, %(digest)s
)

-- name: set_witnesses
select gtid, committed_at, digest from (
    select distinct on (w.origin) w.* from lockstep.set_witnesses w
    join lockstep.batches b on b.id = w.batch and b.state not in ('capturing', 'abandoned')
    where w.source = %(source)s and w.batch <= %(batch)s
    order by w.origin, w.batch desc
) newest
order by batch desc, ordinal

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

-- name: capture_scopes
select c.batch, c.include, c.exclude, b.start_base, b.start_number, b.start_offset
from lockstep.capture_scopes c
join lockstep.batches b on b.id = c.batch and b.state not in ('capturing', 'abandoned')
where c.source = %(source)s
order by c.batch

-- name: batch_start
select start_base, start_number, start_offset from lockstep.batches
where source = %(source)s and id = %(batch)s
