-- -- mirrors ----------------------------------------------------------------------------------

-- Batches that wait for their merge, and those that a table missed while it was stopped and that are
-- still not in its mirror.
-- name: pending_batches
select database, name, array_agg(batch order by batch) as batches from (
    select database, name, batch from lockstep.waiting where source = %(source)s
    union
    select t.database, t.name, s.batch from lockstep.table_states t
    join lockstep.touched s using (source, database, name)
    join lockstep.batches b on b.id = s.batch and b.state in ('captured', 'merged', 'acknowledged')
    where t.source = %(source)s and t.condition <> 'stopped' and t.need is null
      and s.batch >= t.missing_since
      and not lockstep.covered(t.source, t.database, t.name, s.batch)
) p
group by database, name
order by database, name

-- name: open_intents
select * from lockstep.writes
where source = %(source)s and settled_at is null and given_up_at is null
order by id

-- name: intend
insert into lockstep.writes (
    source, token, database, name, app_id, first_batch, last_batch, step, copies,
    may_have_kept_rows
) values %s
returning *

-- name: note_kept_rows
update lockstep.writes set may_have_kept_rows = true
where source = %(source)s and id = %(id)s and not may_have_kept_rows

-- name: settle
update lockstep.writes w set
    delta_version = %(delta_version)s, settled_at = clock_timestamp(),
    settled_token = %(token)s, reason = %(reason)s, table_id = %(table_id)s, mirror = (
        select t.mirror from lockstep.table_states t
        where (t.source, t.database, t.name) = (w.source, w.database, w.name))
where source = %(source)s and id = %(id)s and app_id = %(app_id)s and txn_version = %(txn_version)s
  and delta_version is distinct from %(delta_version)s

-- name: intent_exists
select from lockstep.writes
where source = %(source)s and id = %(id)s and app_id = %(app_id)s and txn_version = %(txn_version)s

-- name: give_up_intents
update lockstep.writes set given_up_at = clock_timestamp()
where source = %(source)s and database = %(database)s and name = %(name)s
  and settled_at is null and given_up_at is null

-- name: intents_of_batch
select * from lockstep.writes
where source = %(source)s and %(batch)s between first_batch and last_batch
order by id

-- name: newest_writes
select a.application, i.newest_intended, w.* from unnest(%(applications)s::text[]) a (application)
cross join lateral (
    select coalesce(max(txn_version), 0) as newest_intended from lockstep.writes
    where source = %(source)s and app_id = a.application
) i
left join lateral (
    select * from lockstep.writes
    where source = %(source)s and app_id = a.application and settled_at is not null
    order by delta_version desc limit 1
) w on true

-- name: mirror_version
select * from lockstep.made_versions where source = %(source)s and write = %(write)s

-- name: newest_version_before
select * from lockstep.made_versions
where source = %(source)s and app_id = any(%(applications)s::text[]) and last_batch < %(batch)s
order by write desc limit 1

-- Records the tables whose entry in this batch's version set differs from that in the set before: another
-- write is the newest up to the batch, or the table cannot be read as of the batch (`missing`). A write
-- that also covers a later batch shows a later position. If later batches were captured before this
-- one is acknowledged, the states of tables include them already (`later`). A batch in which tables
-- catch up ends where the batch before it ended: a table that was in that set and stopped afterwards
-- lacks nothing, so it stays in the set (`complete`).
-- name: record_version_set
with later as (
    select id from lockstep.batches
    where source = %(source)s and id > %(batch)s and state in ('captured', 'merged')
), complete as materialized (
    select t.database, t.name
    from lockstep.table_states t
    cross join lateral (
        select v.missing from lockstep.version_sets v
        where (v.source, v.database, v.name) = (t.source, t.database, t.name)
          and v.batch < %(batch)s
        order by v.batch desc limit 1
    ) p
    where t.source = %(source)s and p.missing is null and exists (
        select from lockstep.batches b where b.id = %(batch)s and b.kind = 'catching-up')
), now as materialized (
    select t.database, t.name, m.missing,
        case when m.missing is null then coalesce(w.mirror, t.mirror) end as mirror,
        case when m.missing is null then w.table_id end as table_id,
        case when m.missing is null then coalesce(w.delta_version, t.adopted_version) end as delta_version,
        case when m.missing = 'together' then f.last_batch end as together
    from lockstep.table_states t
    left join complete c on (c.database, c.name) = (t.database, t.name)
    left join lateral (
        select x.id, x.mirror, x.table_id, x.delta_version from lockstep.writes x
        where (x.source, x.database, x.name) = (t.source, t.database, t.name)
          and x.settled_at is not null and x.last_batch <= %(batch)s
        order by x.last_batch desc, x.id desc limit 1
    ) w on true
    left join lateral (
        select x.last_batch from lockstep.writes x
        where (x.source, x.database, x.name) = (t.source, t.database, t.name)
          and x.settled_at is not null and x.last_batch > %(batch)s and x.first_batch <= %(batch)s
        order by x.id limit 1
    ) f on true
    cross join lateral (
        select case
            when t.condition = 'stopped' and c.name is null then 'stopped'
            when t.need is not null and c.name is null then 'reading'
            when t.condition = 'dropped' and t.stopped_batch <= %(batch)s then 'dropped'
            when c.name is null and exists (
                select from lockstep.table_life e join later l on l.id = e.batch
                where (e.source, e.database, e.name) = (t.source, t.database, t.name)
                  and e.event = 'rejoined'
            ) then 'later'
            when exists (
                select from lockstep.table_events e join later l on l.id = e.batch
                where (e.source, e.database, e.name) = (t.source, t.database, t.name)
                  and e.kind = 'created'
            ) and (
                select e.kind from lockstep.table_events e
                join lockstep.batches b on b.id = e.batch and b.state = 'acknowledged'
                where (e.source, e.database, e.name) = (t.source, t.database, t.name)
                  and e.batch <= %(batch)s
                order by e.batch desc, e.ordinal desc limit 1
            ) = 'dropped' then 'dropped'
            when f.last_batch is not null then 'together'
            when t.missing_since <= %(batch)s then 'behind'
            when w.id is null and t.adopted_version is null then 'unwritten'
        end as missing
        offset 0 -- otherwise Postgres copies the expression to each of its uses
    ) m
    where t.source = %(source)s and (
        w.id is not null or f.last_batch is not null or coalesce((
            select e.batch from lockstep.table_life e
            where (e.source, e.database, e.name) = (t.source, t.database, t.name)
            order by e.id limit 1
        ), 0) <= %(batch)s)
)
insert into lockstep.version_sets (
    source, batch, database, name, mirror, table_id, delta_version, missing, together
)
select %(source)s, %(batch)s, n.database, n.name, n.mirror, n.table_id, n.delta_version,
    n.missing, n.together
from now n
left join lateral (
    select * from lockstep.version_sets v
    where (v.source, v.database, v.name) = (%(source)s, n.database, n.name)
      and v.batch < %(batch)s
    order by v.batch desc limit 1
) p on true
where (p.mirror, p.table_id, p.delta_version, p.missing, p.together)
    is distinct from (n.mirror, n.table_id, n.delta_version, n.missing, n.together)
  and (p.batch is null and n.missing = 'dropped') is not true

-- name: version_set
select v.source, v.batch, v.database, v.name, v.mirror, v.table_id, v.missing, v.together,
    lockstep.newest_showing(v.source, v.mirror, v.delta_version) as delta_version
from lockstep.table_states t
cross join lateral (
    select * from lockstep.version_sets x
    where (x.source, x.database, x.name) = (t.source, t.database, t.name)
      and x.batch <= %(batch)s
    order by x.batch desc limit 1
) v
where t.source = %(source)s and exists (
    select from lockstep.batches b
    where b.source = %(source)s and b.id = %(batch)s and b.state = 'acknowledged')
order by v.database, v.name

-- name: mirror_versions
select w.id as write, v.database, v.name, v.mirror, v.table_id, v.batch as last_batch,
    lockstep.newest_showing(v.source, v.mirror, v.delta_version) as delta_version,
    coalesce(w.may_have_kept_rows, true) as may_have_kept_rows
from lockstep.version_sets v
left join lateral (
    select x.id, x.may_have_kept_rows from lockstep.writes x
    where (x.source, x.database, x.name, x.mirror, x.delta_version)
        = (v.source, v.database, v.name, v.mirror, v.delta_version)
      and x.table_id is not distinct from v.table_id and x.settled_at is not null
      and x.last_batch <= v.batch
    order by x.last_batch desc, x.id desc limit 1
) w on true
where v.source = %(source)s and v.database = %(database)s and v.name = %(name)s
  and v.batch <= %(last)s and v.missing is null
  and not exists (
    select from lockstep.searched_folders l
    where (l.source, l.folder) = (v.source, v.mirror) and l.delta_version < v.delta_version)
order by v.batch desc

-- -- upkeep -----------------------------------------------------------------------------------

-- name: upkeep_versions
select mirror, max(delta_version) as delta_version from lockstep.upkept
where source = %(source)s
group by mirror

-- name: note_upkeep_version
insert into lockstep.upkept (source, mirror, delta_version, shows, token)
values (%(source)s, %(mirror)s, %(delta_version)s, %(shows)s, %(token)s)
on conflict (source, mirror, delta_version) do nothing

-- name: clock
select clock_timestamp() as moment

-- -- revisions --------------------------------------------------------------------------------

-- name: begin_revision
insert into lockstep.revisions (source, token) values (%(source)s, %(token)s) returning id

-- name: revise_file
insert into lockstep.revised_files (revision, segment, ordinal, path, images, size, sha256)
select %(revision)s, s.id, %(ordinal)s, %(path)s, %(images)s, %(size)s, %(sha256)s
from lockstep.segments s
where (s.source, s.batch, s.database, s.name, s.schema_version)
    = (%(source)s, %(batch)s, %(database)s, %(name)s, %(schema_version)s)

-- At least one row. Only the newest revision can be open; if it is not, the row has no files.
-- name: revisions
select n.id, s.batch, s.database, s.name, s.schema_version, s.files
from (
    select coalesce(max(id), 0) as id from lockstep.revisions where source = %(source)s
) n
left join lateral (
    select s.*, json_agg(json_build_array(f.path, f.images, f.size, f.sha256)
        order by f.ordinal) as files
    from lockstep.revisions r
    join lockstep.revised_files f on f.revision = r.id
    join lockstep.segments s on s.id = f.segment
    where r.id = n.id and r.state = 'open'
    group by s.id
) s on true
order by s.id

-- name: end_revision
update lockstep.revisions set state = %(state)s, ended_at = clock_timestamp()
where source = %(source)s and id = %(id)s and state is distinct from %(state)s

-- name: revision_ended
select from lockstep.revisions
where source = %(source)s and id = %(id)s and state = %(state)s

-- -- catalogs ---------------------------------------------------------------------------------

-- At least one row; it has no table if the catalog has no entry.
-- name: registrations
select coalesce((
    select statement from lockstep.catalogs where source = %(source)s and catalog = %(catalog)s
), 0) as statement, r.*
from (select) single_row
left join lockstep.registrations r on r.source = %(source)s and r.catalog = %(catalog)s
order by r.database, r.name

-- name: note_registration
insert into lockstep.registrations (
    source, catalog, database, name, schema_name, table_name, location, content, schema_version,
    new_schema_name, new_table_name
) values (
    %(source)s, %(catalog)s, %(database)s, %(name)s, %(schema_name)s, %(table_name)s, %(location)s,
    %(content)s, %(schema_version)s, %(new_schema_name)s, %(new_table_name)s
)
on conflict on constraint registrations_pk do update set
    schema_name = excluded.schema_name,
    table_name = excluded.table_name,
    location = excluded.location,
    content = excluded.content,
    schema_version = excluded.schema_version,
    new_schema_name = excluded.new_schema_name,
    new_table_name = excluded.new_table_name

-- name: delete_registration
delete from lockstep.registrations
where source = %(source)s and catalog = %(catalog)s
  and database = %(database)s and name = %(name)s

-- name: note_registered_up_to
insert into lockstep.catalogs (source, catalog, statement)
values (%(source)s, %(catalog)s, %(statement)s)
on conflict on constraint catalogs_pk do update set statement = excluded.statement

-- -- the lake ---------------------------------------------------------------------------------

-- name: identity
select id::text as id from lockstep.ledger

-- name: examined_versions
select folder, delta_version from lockstep.searched_folders where source = %(source)s order by folder

-- name: note_settled_version
insert into lockstep.searched_folders (source, folder, delta_version)
select source, mirror, delta_version from lockstep.writes where source = %(source)s and id = %(id)s
on conflict (source, folder) do update set delta_version = excluded.delta_version

-- name: note_examined_versions
insert into lockstep.searched_folders (source, folder, delta_version) values %s
on conflict (source, folder) do update set delta_version = excluded.delta_version

-- A new table in such a folder begins at version 0 again, so upkeep's notes about the folder go, too.
-- name: delete_examined_versions
with notes_of_upkeep as (
    delete from lockstep.upkept where source = %(source)s and mirror = any(%(folders)s)
)
delete from lockstep.searched_folders where source = %(source)s and folder = any(%(folders)s)

-- name: replacement_times
select v.mirror, case when bool_and(n.batch is not null) then max(b.acknowledged_at) end as at
from lockstep.version_sets v
left join lateral (
    select x.batch from lockstep.version_sets x
    where (x.source, x.database, x.name) = (v.source, v.database, v.name) and x.batch > v.batch
    order by x.batch limit 1
) n on true
left join lockstep.batches b on b.id = n.batch
where v.source = %(source)s and v.mirror = any(%(folders)s)
group by v.mirror

-- name: number_above
select setval(pg_get_serial_sequence('lockstep.batches', 'id'),
              greatest(%(batch)s, nextval(pg_get_serial_sequence('lockstep.batches', 'id')))),
       setval('lockstep.txn_versions',
              greatest(%(txn_version)s, nextval('lockstep.txn_versions')))

-- name: highest_number
select coalesce(pg_sequence_last_value(pg_get_serial_sequence('lockstep.batches', 'id')), 0) as batch

-- name: delete_inherited_batches
delete from lockstep.inherited where source = %(source)s

-- name: inherit
insert into lockstep.inherited (source, above, through)
values (%(source)s, %(above)s, %(through)s)

-- name: inherited_batches
select above, through from lockstep.inherited where source = %(source)s order by above
