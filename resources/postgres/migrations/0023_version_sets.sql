-- A row of version_sets holds from its batch on, until the table's next row: a batch only adds
-- what became different with it. A table that cannot be read as of a batch has a row that says
-- why, and names the batch that it can be read as of, where it was merged together with later
-- ones. Until now each batch had a row for each table that could be read, and nothing of the
-- others.
--
-- A write says where it went and which Delta table that was: another one that is made in the
-- same folder begins at version 0 again.

alter table lockstep.writes
    add column mirror text,
    add column table_id text,
    add constraint writes_mirror_settled check (mirror is null or settled_at is not null),
    add constraint writes_table_id_of_mirror check (table_id is null or mirror is not null);

create index writes_of_table on lockstep.writes (source, database, name, last_batch)
    where settled_at is not null;

alter table lockstep.version_sets
    alter column mirror drop not null,
    alter column delta_version drop not null,
    add column table_id text,
    add column missing text,
    add column together bigint,
    add constraint version_sets_told check (
        (missing is null and num_nonnulls(mirror, delta_version) = 2)
        or (missing is not null and num_nonnulls(mirror, delta_version, table_id) = 0)),
    add constraint version_sets_together
        check ((missing is not distinct from 'together') = (together is not null));

create index version_sets_of_table on lockstep.version_sets (source, database, name, batch);

-- Of batches before this: what a set left out, and rows that repeat those before them.
create temporary table chained on commit drop as
select source, id, lag(id) over (partition by source order by id) as before
from lockstep.batches where state = 'acknowledged';

create temporary table left_out on commit drop as
select p.source, c.id as batch, p.database, p.name
from chained c
join lockstep.version_sets p on p.source = c.source and p.batch = c.before
where not exists (
    select from lockstep.version_sets v
    where (v.source, v.batch, v.database, v.name) = (p.source, c.id, p.database, p.name));

create temporary table repeated on commit drop as
select v.source, v.batch, v.database, v.name
from chained c
join lockstep.version_sets v on v.source = c.source and v.batch = c.id
join lockstep.version_sets p on p.source = c.source and p.batch = c.before
    and (p.database, p.name, p.mirror, p.delta_version)
      = (v.database, v.name, v.mirror, v.delta_version);

alter table lockstep.version_sets disable trigger version_sets_stay;
delete from lockstep.version_sets v using repeated r
where (v.source, v.batch, v.database, v.name) = (r.source, r.batch, r.database, r.name);
alter table lockstep.version_sets enable trigger version_sets_stay;

insert into lockstep.version_sets (source, batch, database, name, missing)
select source, batch, database, name, 'unrecorded' from left_out;
