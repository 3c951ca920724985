-- The lives of tables: events, and the states that they lead to.

-- name: states_of
select t.* from lockstep.table_states t
join unnest(%(databases)s::text[], %(names)s::text[]) w (database, name) using (database, name)
where t.source = %(source)s

-- name: record_events
insert into lockstep.table_life (source, database, name, event, condition, batch, token, details)
values %s
returning id, database, name

-- name: record_states
insert into lockstep.table_states as t (
    source, database, name, condition, stopped_by, generation, mirror, changelog, reason, hint,
    position, mirror_schema_version, changelog_generation, adopted_version, need, mirror_generation,
    stopped_batch, stopped_base, stopped_number, stopped_offset, event
) values %s
on conflict (source, database, name) do update set
    condition = excluded.condition, stopped_by = excluded.stopped_by,
    generation = excluded.generation, mirror = excluded.mirror,
    changelog = excluded.changelog, reason = excluded.reason, hint = excluded.hint,
    position = excluded.position, mirror_schema_version = excluded.mirror_schema_version,
    changelog_generation = excluded.changelog_generation, adopted_version = excluded.adopted_version,
    need = excluded.need, mirror_generation = excluded.mirror_generation,
    stopped_batch = excluded.stopped_batch, stopped_base = excluded.stopped_base,
    stopped_number = excluded.stopped_number, stopped_offset = excluded.stopped_offset,
    event = excluded.event

-- name: last_capture_end
select id, end_base, end_number, end_offset from lockstep.batches
where source = %(source)s and state in ('captured', 'merged', 'acknowledged')
order by id desc limit 1

-- All events of the tables of which a batch recorded an event, or that stopped in it.
-- name: life_events_of_batch
select e.* from lockstep.table_life e
where e.source = %(source)s and (e.database, e.name) in (
    select database, name from lockstep.table_life where batch = %(batch)s
    union
    select database, name from lockstep.table_states
    where source = %(source)s and stopped_batch = %(batch)s
)
order by e.id

-- name: abandoned_among
select id, kind, start_base, start_number, start_offset from lockstep.batches
where source = %(source)s and id = any(%(batches)s::bigint[]) and state = 'abandoned'
