-- The chain of batches.

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

-- name: first_batch
select b.*, l.dagster_run, d.continuity from lockstep.batches b
join lockstep.leases l on l.source = b.source and l.token = b.token
left join lockstep.decisions d on d.id = b.start_decision
where b.source = %(source)s and b.state <> 'abandoned'
order by b.id limit 1

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

-- name: captured_by
select b.*, l.dagster_run, d.continuity from lockstep.batches b
join lockstep.leases l on l.source = b.source and l.token = b.token
left join lockstep.decisions d on d.id = b.start_decision
where b.source = %(source)s and starts_with(l.dagster_run, %(dagster_run)s)
  and b.state not in ('capturing', 'abandoned')
order by b.id desc limit 1

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

-- name: reigns
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
    own_requests = %(own)s, spark_requests = %(spark)s
where source = %(source)s and id = %(batch)s
