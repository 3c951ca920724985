-- What several batches have.

-- name: rows_between
select c.batch, c.database, c.name, sum(c.inserted) as inserted, sum(c.updated) as updated,
    sum(c.deleted) as deleted, sum(c.images) as images, sum(c.size) as size, sum(c.read) as read
from (
    select s.batch, s.database, s.name, s.inserted, s.updated, s.deleted,
        coalesce(f.images, 0) as images, coalesce(f.size, 0) as size, 0 as read
    from lockstep.segments s
    cross join lateral (
        select sum(x.images) as images, sum(x.size) as size
        from lockstep.current_files x where x.segment = s.id
    ) f
    where s.source = %(source)s and s.batch between %(first)s and %(last)s
    union all
    select p.batch, p.database, p.name, 0, 0, 0, 0, coalesce(f.size, 0), coalesce(f.images, 0)
    from lockstep.snapshots p
    cross join lateral (
        select sum(x.images) as images, sum(x.size) as size
        from lockstep.snapshot_files x where x.snapshot = p.id
    ) f
    where p.source = %(source)s and p.batch between %(first)s and %(last)s
) c
join lockstep.batches b on b.id = c.batch and b.state not in ('capturing', 'abandoned')
group by c.batch, c.database, c.name
having sum(c.images) + sum(c.read) > 0
order by c.batch, c.database collate "C", c.name collate "C"

-- name: events_between
select e.* from lockstep.table_events e
join lockstep.batches b on b.id = e.batch and b.state not in ('capturing', 'abandoned')
where e.source = %(source)s and e.batch between %(first)s and %(last)s
order by e.batch, e.sequence, e.place_number, e.place_offset, e.database collate "C",
    e.name collate "C", e.ordinal

-- name: writes_between
select * from lockstep.writes
where source = %(source)s and settled_at is not null
  and first_batch <= %(last)s and last_batch >= %(first)s
order by id
