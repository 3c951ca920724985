-- What runs did that Dagster does not record.

-- name: runs_elsewhere
select count(*) as runs, array(
    select b.id from lockstep.batches b
    join lockstep.leases o on (o.source, o.token) = (b.source, b.token)
    where b.source = %(source)s and b.token > %(after)s and b.token <= %(through)s
      and not o.in_dagster and b.state not in ('capturing', 'abandoned')
    order by b.id
) as batches
from lockstep.leases l
where l.source = %(source)s and l.token > %(after)s and l.token <= %(through)s
  and not l.in_dagster and l.dagster_run is not null

-- name: written_elsewhere
select distinct on (w.database collate "C", w.name collate "C") w.*,
    min(w.first_batch) over (partition by w.database, w.name) as since
from lockstep.writes w
join lockstep.leases l on (l.source, l.token) = (w.source, w.settled_token)
where w.source = %(source)s and w.settled_token > %(after)s and w.settled_token <= %(through)s
  and not l.in_dagster
  and (w.database collate "C", w.name collate "C") > (%(database)s, %(name)s)
order by w.database collate "C", w.name collate "C", w.id desc
limit %(most)s
