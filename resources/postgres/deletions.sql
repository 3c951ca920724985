-- The deletion of changes, and the clearing of values that less is shown of.

-- name: deletion_notes
select n.above as after_batch, n.through as last_batch, n.unlisted_at,
    n.deleted_at is not null as is_deleted, n.pruned_at is not null as is_pruned,
    b.end_base, b.end_number, b.end_offset, b.end_gtid_set, b.end_server_uuid, b.end_committed_at
from (
    select f.*,
        coalesce(lag(f.through) over (order by f.through), 0) as above,
        lead(f.through) over (order by f.through) is null as newest
    from lockstep.forgotten f where f.source = %(source)s
) n
join lockstep.batches b on b.id = n.through
where n.newest or n.pruned_at is null
order by n.through

-- name: deletion_notes_of_table
select b.id as through, b.end_base, b.end_number, b.end_offset, b.end_gtid_set, b.end_server_uuid,
    b.end_committed_at
from lockstep.batches b
where b.id = lockstep.cleared_through(%(source)s, %(database)s, %(name)s)

-- name: uncleared_values
select t.*, coalesce((
    select json_agg(json_build_array(h.kind, h.holder) order by h.kind, h.holder)
    from lockstep.holding_clear h where h.id = t.id), '[]') as holders, not exists (
    select from lockstep.writes w
    where (w.source, w.database, w.name) = (t.source, t.database, t.name)
      and w.settled_at is not null and w.last_batch > t.through) as stale
from lockstep.tightened t
where t.source = %(source)s and t.cleared_at is null
order by t.database collate "C", t.name collate "C", t.id

-- name: note_tightened
insert into lockstep.tightened (
    source, token, database, name, through, columns, fewer_rows, rehashed, kept_because
) values (
    %(source)s, %(token)s, %(database)s, %(name)s, %(through)s, %(columns)s, %(fewer_rows)s, %(rehashed)s,
    %(kept_because)s
)

-- name: note_kept_because
update lockstep.tightened set kept_because = %(kept_because)s
where id = %(id)s and source = %(source)s

-- name: begin_clearing
update lockstep.tightened set begun_at = clock_timestamp()
where id = %(id)s and source = %(source)s and begun_at is null

-- name: allow_clearing
select set_config('lockstep.clearing', 'on', true)

-- name: clear_file
update lockstep.source_files set path = %(path)s, size = %(size)s, sha256 = %(sha256)s
where source = %(source)s and batch = %(batch)s and name = %(name)s and path = %(before)s

-- name: clear_version
update lockstep.table_versions set schema = %(schema)s, fingerprint = %(fingerprint)s,
    shown_as = %(shown_as)s, reason = %(reason)s
where source = %(source)s and database = %(database)s and name = %(name)s and version = %(version)s

-- name: clear_statement
update lockstep.schema_statements set text = %(text)s, context = %(context)s, effects = %(effects)s
where source = %(source)s and id = %(id)s

-- name: ended_loads
select id, schema from lockstep.loads
where source = %(source)s and database = %(database)s and name = %(name)s
  and num_nonnulls(joined_batch, void_because) = 1 and schema is not null
order by id

-- name: clear_load
update lockstep.loads set schema = %(schema)s where source = %(source)s and id = %(id)s

-- The bounds of chunks are values of the table's key.
-- name: clear_chunks
update lockstep.load_chunks c set
    after = case when c.after is not null then '["***"]'::json end,
    through = case when c.through is not null then '["***"]'::json end
from lockstep.loads l
where l.id = c.load and l.source = %(source)s and l.id = %(id)s

-- name: note_cleared
update lockstep.tightened set cleared_at = clock_timestamp()
where id = %(id)s and source = %(source)s and cleared_at is null

-- name: holders
select kind, holder as name, through from lockstep.holding where source = %(source)s
order by through, kind, holder

-- name: acknowledged_before
select coalesce(max(id), 0) as batch from lockstep.batches
where source = %(source)s and state = 'acknowledged' and acknowledged_at < %(moment)s

-- name: change_files
select s.database, s.name, v.generation, f.path, f.size from lockstep.segments s
join lockstep.batches b on b.id = s.batch and b.state = 'acknowledged'
join lockstep.table_versions v on v.version = s.schema_version
    and (v.source, v.database, v.name) = (s.source, s.database, s.name)
cross join lateral (
    select x.path, x.size from lockstep.segment_files x where x.segment = s.id
    union
    select y.path, y.size from lockstep.revised_files y where y.segment = s.id
) f
where s.source = %(source)s and s.batch > %(above)s and s.batch <= %(through)s
union all
select null, x.name, 1, x.path, x.size from lockstep.source_files x
join lockstep.batches b on b.id = x.batch and b.state = 'acknowledged'
where x.source = %(source)s and x.batch > %(above)s and x.batch <= %(through)s
order by 1, 2, 3, 4

-- A transaction that makes a consumer meanwhile waits, and then sees which changes are kept.
-- name: keep_consumers_out
lock table lockstep.consumers in share row exclusive mode

-- name: begin_deletion
insert into lockstep.forgotten (source, through, token)
values (%(source)s, %(through)s, %(token)s)

-- name: note_unlisted
update lockstep.forgotten set unlisted_at = clock_timestamp()
where source = %(source)s and through = %(through)s and unlisted_at is null

-- name: note_deleted
update lockstep.forgotten set deleted_at = clock_timestamp()
where source = %(source)s and through = %(through)s and deleted_at is null

-- name: prune_contents
select * from lockstep.prune_contents(%(source)s, %(above)s, %(through)s, %(most)s)

-- name: prune_leases
select * from lockstep.prune_leases(%(source)s, %(above)s, %(through)s, %(most)s)

-- name: prune_batches
select * from lockstep.prune_batches(%(source)s, %(above)s, %(through)s, %(most)s)

-- name: note_pruned
update lockstep.forgotten set pruned_at = clock_timestamp()
where source = %(source)s and through = %(through)s and pruned_at is null

-- name: pruned_through
select lockstep.pruned_through(%(source)s) as batch
