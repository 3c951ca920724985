-- -- the chain --------------------------------------------------------------------------------

-- A run resumes by GTIDs only if no run since the capture found that they were off.
-- name: cursors
select w.which, b.*, r.resumable, not r.resumable and exists (
    select from lockstep.batches o
    where o.source = b.source and o.by_gtid and o.state <> 'abandoned'
) as was_by_gtid
from (values
    ('captured', array['captured', 'merged', 'acknowledged']), ('acknowledged', array['acknowledged'])
) w (which, states)
cross join lateral (
    select * from lockstep.batches
    where source = %(source)s and state = any(w.states)
    order by id desc limit 1
) b
join lockstep.sources s on s.name = b.source
cross join lateral (
    select b.by_gtid and (s.gtids_off_at > b.captured_at) is not true
) r (resumable)

-- name: batches
select * from lockstep.begun_batches where source = %(source)s order by id desc limit %(limit)s

-- name: unfinished_batches
select * from lockstep.begun_batches
where source = %(source)s and state in ('capturing', 'captured', 'merged')
order by id

-- name: live_batches
select * from lockstep.begun_batches
where source = %(source)s and state <> 'abandoned' and id between %(first)s and %(last)s
  and (%(continuity)s::text is null or continuity = %(continuity)s)
  and (%(run)s::text is null or starts_with(run_id, %(run)s))
order by id limit %(limit)s

-- name: captured_batch
select * from lockstep.begun_batches
where source = %(source)s and state not in ('capturing', 'abandoned')
  and end_server_uuid = %(server_uuid)s and start_base = %(base)s and end_base = %(base)s
  and (start_number, start_offset) <= (%(number)s::bigint, %(offset)s::bigint)
  and (end_number, end_offset) >= (%(number)s::bigint, %(offset)s::bigint)
  and kind <> 'catching-up'
order by id desc limit 1

-- name: server_periods
select since, server_uuid from (
    select id as since, start_server_uuid as server_uuid,
           lag(start_server_uuid) over (order by id) as before
    from lockstep.batches
    where source = %(source)s and state <> 'abandoned'
) b
where before is distinct from server_uuid
order by since

-- name: begin_batch
with begun as (
    insert into lockstep.batches (
        source, state, kind, continued_batch, start_decision, sequence_before, token,
        start_base, start_number, start_offset, start_gtid_set, start_server_uuid,
        start_committed_at
    ) values (
        %(source)s, 'capturing', %(kind)s, %(continued_batch)s, %(start_decision)s,
        coalesce((
            select sequence_before + changes from lockstep.batches
            where id = coalesce(%(continued_batch)s, (
                select previous_batch from lockstep.decisions where id = %(start_decision)s))
        ), 0),
        %(token)s, %(base)s, %(number)s, %(offset)s, %(gtid_set)s, %(server_uuid)s,
        %(committed_at)s
    )
    returning *
)
select b.*, l.run_id, d.continuity from begun b
join lockstep.leases l on l.source = b.source and l.token = b.token
left join lockstep.decisions d on d.id = b.start_decision

-- name: end_capture
update lockstep.batches set
    state = 'captured', captured_at = clock_timestamp(),
    end_base = %(base)s, end_number = %(number)s, end_offset = %(offset)s,
    end_gtid_set = %(gtid_set)s, end_server_uuid = %(server_uuid)s,
    end_committed_at = %(committed_at)s,
    anchor_offset = %(anchor_offset)s, anchor_length = %(anchor_length)s,
    anchor_crc32 = %(anchor_crc32)s, anchor_gtid = %(anchor_gtid)s,
    anchor_file_created = %(anchor_file_created)s,
    changes = %(changes)s, transactions = %(transactions)s, log_bytes = %(log_bytes)s,
    passed_statements = %(passed_statements)s,
    by_gtid = %(by_gtid)s,
    server_started_at = %(server_started_at)s, server_resets = %(server_resets)s
where source = %(source)s and id = %(batch)s

-- name: abandon
update lockstep.batches set
    state = 'abandoned', abandoned_at = clock_timestamp(), abandoned_because = %(reason)s
where source = %(source)s and id = %(batch)s

-- name: mark_merged
update lockstep.batches b set state = 'merged', merged_at = clock_timestamp()
where b.source = %(source)s and b.state = 'captured'
  and not exists (select from lockstep.waiting w where w.batch = b.id)
returning b.id

-- name: acknowledge
update lockstep.batches set
    state = 'acknowledged', acknowledged_at = clock_timestamp(),
    lockstep_requests = %(own)s, spark_requests = %(spark)s
where source = %(source)s and id = %(batch)s

-- -- what one batch captured ------------------------------------------------------------------

-- name: record_segments
insert into lockstep.segments (
    source, batch, database, name, schema_version, inserted, updated, deleted,
    first_sequence, last_sequence
) values %s
returning id, database, name, schema_version

-- name: record_segment_files
insert into lockstep.segment_files (segment, ordinal, path, images, size, sha256) values %s

-- What batches captured: of the tables with these names, or without names of all tables and of the
-- source itself. Databases and names are compared separately, so the caller drops some tables.
-- name: contents
select b.id as batch, (
    select json_agg(x order by x.id) from (
        select s.*, (
            select json_agg(json_build_array(f.path, f.images, f.size, f.sha256) order by f.ordinal)
            from lockstep.current_files f where f.segment = s.id
        ) as files
        from lockstep.segments s
        where s.batch = b.id and (
            %(names)s::text[] is null or s.database = any(%(databases)s::text[]) and s.name = any(%(names)s::text[]))
    ) x
) as segments, (
    select json_agg(e order by e.sequence,
        case when %(names)s::text[] is null then e.place_number end,
        case when %(names)s::text[] is null then e.place_offset end,
        e.database collate "C", e.name collate "C", e.ordinal)
    from lockstep.table_events e
    where e.batch = b.id and (
        %(names)s::text[] is null or e.database = any(%(databases)s::text[]) and e.name = any(%(names)s::text[]))
) as events, (
    select json_agg(x order by x.database collate "C", x.name collate "C") from (
        select s.*, (
            select json_agg(json_build_array(f.path, f.images, f.size, f.sha256) order by f.ordinal)
            from lockstep.snapshot_files f where f.snapshot = s.id
        ) as files
        from lockstep.snapshots s
        where s.batch = b.id and (
            %(names)s::text[] is null or s.database = any(%(databases)s::text[]) and s.name = any(%(names)s::text[]))
    ) x
) as snapshots, (
    select json_agg(x order by x.name collate "C") from (
        select f.name, json_agg(json_build_array(f.path, f.images, f.size, f.sha256)
            order by f.ordinal) as files
        from lockstep.source_files f
        where f.batch = b.id and %(names)s::text[] is null
        group by f.name
    ) x
) as system_segments, (
    select json_agg(json_build_object('batch', p.batch, 'format_id', p.format_id,
        'gtrid', encode(p.gtrid, 'hex'), 'bqual', encode(p.bqual, 'hex'), 'position', p.position,
        'path', p.path, 'size', p.size, 'sha256', p.sha256,
        'file_key', encode(p.file_key, 'hex')) order by p.id)
    from lockstep.prepared p
    where p.ended_by = b.id and %(names)s::text[] is null
) as ended
from lockstep.batches b
where b.source = %(source)s and b.id between %(first)s and %(last)s
  and b.state not in ('capturing', 'abandoned')
  and (%(names)s::text[] is null or b.id in (
      select t.batch from lockstep.touched t
      where t.source = %(source)s and t.database = any(%(databases)s::text[]) and t.name = any(%(names)s::text[])))
order by b.id

-- name: record_system_files
insert into lockstep.source_files (source, batch, name, ordinal, path, images, size, sha256)
values %s

-- name: record_table_events
insert into lockstep.table_events (
    source, batch, database, name, ordinal, kind, sequence, version, place_base, place_number,
    place_offset, reason, origin_database, origin_name
) values %s

-- name: record_snapshots
insert into lockstep.snapshots (source, batch, database, name, version, low_sequence, columns)
values %s
returning id, database, name

-- name: record_snapshot_files
insert into lockstep.snapshot_files (snapshot, ordinal, path, images, size, sha256) values %s

-- name: record_prepared
insert into lockstep.prepared (
    source, batch, format_id, gtrid, bqual, position, path, size, sha256, file_key
) values (
    %(source)s, %(batch)s, %(format_id)s, %(gtrid)s, %(bqual)s, %(position)s, %(path)s,
    %(size)s, %(sha256)s, %(file_key)s
)

-- name: record_end
update lockstep.prepared set ended_by = %(ended_by)s, committed = %(committed)s
where source = %(source)s and batch = %(batch)s
  and format_id = %(format_id)s and gtrid = %(gtrid)s and bqual = %(bqual)s

-- name: open_prepared
select * from lockstep.prepared
where source = %(source)s and ended_by is null and not abandoned
order by id

-- name: record_set_anchors
insert into lockstep.set_anchors (source, batch, ordinal, origin, gtid, committed_at, digest)
values %s

-- name: set_anchors
select gtid, committed_at, digest from (
    select distinct on (w.origin) w.* from lockstep.set_anchors w
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

-- The patterns count from where the log is read on with them: from the batch's start, or from its end
-- if tables catch up in it, because the next ordinary batch begins there.
-- name: capture_scopes
select c.batch, c.include, c.exclude, p.base as start_base, p.number as start_number,
       p.offset as start_offset
from lockstep.capture_scopes c
join lockstep.batches b on b.id = c.batch and b.state not in ('capturing', 'abandoned')
cross join lateral (
    select b.start_base, b.start_number, b.start_offset where b.kind <> 'catching-up'
    union all
    select b.end_base, b.end_number, b.end_offset where b.kind = 'catching-up'
) p (base, number, "offset")
where c.source = %(source)s
order by c.batch

-- name: batch_start
select start_base, start_number, start_offset from lockstep.batches
where source = %(source)s and id = %(batch)s

-- -- what many batches captured ---------------------------------------------------------------

-- name: batch_times
select id, end_server_uuid as server_uuid, state = 'acknowledged' as is_acknowledged,
       kind = 'catching-up' as catches_up, transactions, start_committed_at as begin,
       end_committed_at as "end"
from lockstep.batches
where source = %(source)s and state not in ('capturing', 'abandoned')
  and id >= lockstep.pruned_through(%(source)s)
order by id

-- name: first_changes
select t.database, t.name, min(t.batch) as batch from lockstep.touched t
join lockstep.batches b on b.id = t.batch and b.state not in ('capturing', 'abandoned')
where t.source = %(source)s and t.batch between %(first)s and %(last)s
group by t.database, t.name

-- If a batch has rows of both kinds, `extra_rows` names those that were read from the source, not those
-- of an XA transaction that was prepared in an earlier batch.
-- name: special_batches
select batch, bool_or(kind = 'structure') as with_structures, count(distinct revision) as revisions,
    case when bool_or(kind = 'source') then 'source'
        when bool_or(kind = 'prepared') then 'prepared' end as extra_rows
from (
    select p.ended_by as batch, 'prepared' as kind, null::bigint as revision
    from lockstep.prepared p
    where p.source = %(source)s and p.ended_by between %(first)s and %(last)s
      and p.batch < p.ended_by
    union all
    select s.batch, 'source', null from lockstep.snapshots s
    where s.source = %(source)s and s.batch between %(first)s and %(last)s
    union all
    select e.batch, 'source', null from lockstep.table_events e
    where e.source = %(source)s and e.batch between %(first)s and %(last)s
      and e.kind in ('reread', 'refreshed')
    union all
    select v.batch, 'structure', null from lockstep.table_versions v
    where v.source = %(source)s and v.batch between %(first)s and %(last)s
    union all
    select d.batch, 'structure', null from lockstep.database_versions d
    where d.source = %(source)s and d.batch between %(first)s and %(last)s
    union all
    select s.batch, 'revised', r.id from lockstep.revisions r
    join lockstep.revised_files f on f.revision = r.id
    join lockstep.segments s on s.id = f.segment
    where r.source = %(source)s and s.batch between %(first)s and %(last)s and r.state = 'settled'
) marks
where exists (
    select from lockstep.batches b
    where b.id = marks.batch and b.state not in ('capturing', 'abandoned'))
group by batch

-- name: writes_within
select * from lockstep.writes
where source = %(source)s and settled_at is not null
  and first_batch <= %(last)s and last_batch >= %(first)s
order by id
