-- How tables stand: their states, and how much of them the lake can have.

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

-- name: record_handover
insert into lockstep.handovers (
    source, batch, database, name, generation, mirror, delta_version, shows,
    before_generation, before_mirror
) values (
    %(source)s, %(batch)s, %(database)s, %(name)s, %(generation)s, %(mirror)s,
    %(delta_version)s, %(shows)s, %(before_generation)s, %(before_mirror)s
)

-- A table that stops lacks what is not merged by then; one that was behind catches up.
-- name: count_behind
update lockstep.table_states set behind_batch = lockstep.behind(source, database, name, behind_batch)
where source = %(source)s and database = %(database)s and name = %(name)s
  and (condition in ('quarantined', 'paused') or behind_batch is not null)

-- name: count_behind_of_source
update lockstep.table_states set behind_batch = lockstep.behind(source, database, name, behind_batch)
where source = %(source)s and behind_batch is not null

-- What is captured of a table that is loading waits for its rows.
-- name: count_behind_of_loading
update lockstep.table_states set behind_batch = lockstep.behind(source, database, name, behind_batch)
where source = %(source)s and condition = 'loading'
