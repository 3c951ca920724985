-- The history of structures. At a place of the log, the newest version up to it counts, by (batch,
-- number, offset, version). A subquery asks for the state of its batch, row by row from the newest
-- version on, so that Postgres reads one or few rows by the index, however many versions there are.

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
  and (not %(referring)s or position('"foreign_keys":' in v.schema::text) > 0)
  and (not %(shaped)s or v.shown_as is not null)
order by v.database collate "C", v.name collate "C"

-- name: schema_version
select * from lockstep.table_versions
where source = %(source)s and database = %(database)s and name = %(name)s
  and version = %(version)s

-- name: schema_versions
select v.* from unnest(%(databases)s::text[], %(names)s::text[]) w (database, name)
join lockstep.table_versions v using (database, name)
join lockstep.batches b on b.id = v.batch and b.state <> 'abandoned'
where v.source = %(source)s
order by v.database collate "C", v.name collate "C", v.batch, v.since_number, v.since_offset,
    v.version

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

-- name: statements_within
select s.* from lockstep.schema_statements s
join lockstep.batches b on b.id = s.batch and b.state <> 'abandoned'
where s.source = %(source)s and s.batch between %(first)s and %(last)s
order by s.id

-- name: statements
select * from lockstep.schema_statements where source = %(source)s and id = any(%(numbers)s)

-- name: record_versions
insert into lockstep.table_versions (
    source, batch, database, name, version, since_base, since_number, since_offset, knowledge,
    origin, schema, fingerprint, columns_from, statement, reason, generation, shown_as
) values %s

-- name: new_statement_ids
select nextval(pg_get_serial_sequence('lockstep.schema_statements', 'id')) as id
from generate_series(1, %(count)s)

-- name: record_statements
insert into lockstep.schema_statements (
    id, source, batch, begin_base, begin_number, begin_offset, end_base, end_number, end_offset,
    gtid, committed_at, database, text, context, outcome, effects
) overriding system value values %s

-- name: record_databases
insert into lockstep.database_versions (
    source, batch, name, since_base, since_number, since_offset, charset, collation_name, code,
    statement
) values %s
