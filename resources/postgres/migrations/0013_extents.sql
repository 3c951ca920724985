-- Which tables the lake can have but a part of: rows were there before the log that was read
-- begins. A row says so from a batch on, or that it has all of the table; the newest of a live
-- batch counts. A place where the table was seen empty: whoever reads to there has all of it.

create table lockstep.extents (
    id bigint generated always as identity,
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    begins_base text,
    begins_number bigint,
    begins_offset bigint,
    empty_base text,
    empty_number bigint,
    empty_offset bigint,
    constraint extents_pk primary key (id),
    constraint extents_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint extents_begins_whole
        check (num_nonnulls(begins_base, begins_number, begins_offset) in (0, 3)),
    constraint extents_empty_whole
        check (num_nonnulls(empty_base, empty_number, empty_offset) in (0, 3)),
    constraint extents_empty_of_partial check (empty_base is null or begins_base is not null)
);

create index extents_newest on lockstep.extents (source, database, name, batch, id);

create trigger extents_stay before update or delete on lockstep.extents
    for each row execute function lockstep.stays('extents_stay');

-- What was read before this: a table is taken for a part of itself where its history begins with
-- what the server had, and nothing has made it whole since. Whether it had rows then nobody
-- recorded.
create temporary table begun on commit drop as
select v.source, v.batch, v.database, v.name, v.since_base, v.since_number, v.since_offset
from (
    select distinct on (v.source, v.database, v.name) v.*
    from lockstep.table_versions v
    join lockstep.batches b on b.id = v.batch and b.state <> 'abandoned'
    order by v.source, v.database, v.name, v.batch, v.since_number, v.since_offset, v.version
) v
where v.origin = 'baseline' and not exists (
    select from lockstep.table_events e
    join lockstep.batches b on b.id = e.batch and b.state <> 'abandoned'
    where (e.source, e.database, e.name) = (v.source, v.database, v.name) and e.batch >= v.batch
      and e.kind in ('created', 'truncated', 'dropped', 'reread')
);

insert into lockstep.extents (source, batch, database, name, begins_base, begins_number, begins_offset)
select * from begun g
where not exists (
    select from lockstep.table_versions d
    join lockstep.batches b on b.id = d.batch and b.state <> 'abandoned'
    where (d.source, d.database, d.name) = (g.source, g.database, g.name)
      and d.knowledge = 'dropped'
);

-- A mirror that changed hands is what it was under the name that had it first.
insert into lockstep.extents (source, batch, database, name, begins_base, begins_number, begins_offset)
select h.source, h.batch, h.database, h.name, f.since_base, f.since_number, f.since_offset
from lockstep.handovers h
join lockstep.batches b on b.id = h.batch and b.state <> 'abandoned'
left join lateral (
    select * from begun g where g.source = h.source and exists (
        select from lockstep.handovers o
        where (o.source, o.database, o.name) = (g.source, g.database, g.name)
          and o.before_generation = 1 and o.before_mirror = h.mirror)
    limit 1
) f on true
where h.shows is not null;
