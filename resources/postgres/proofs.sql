-- What comparisons of tables found.

-- name: proofs
select * from lockstep.table_proofs where source = %(source)s order by database, name, whole desc

-- name: note_compared
insert into lockstep.table_proofs as t (
    source, database, name, whole, compared_at, differing, proven_at, proof, rows,
    at_base, at_number, at_offset, gtid_set
)
select %(source)s, %(database)s, %(name)s, %(whole)s, now, %(differing)s,
       case when %(proof)s::text is null then null else now end, %(proof)s, %(rows)s,
       %(base)s, %(number)s, %(offset)s, %(gtid_set)s
from clock_timestamp() as now
on conflict (source, database, name, whole) do update set
    compared_at = excluded.compared_at,
    differing = excluded.differing,
    proven_at = coalesce(excluded.proven_at, t.proven_at),
    proof = coalesce(excluded.proof, t.proof),
    rows = coalesce(excluded.rows, t.rows),
    at_base = coalesce(excluded.at_base, t.at_base),
    at_number = coalesce(excluded.at_number, t.at_number),
    at_offset = coalesce(excluded.at_offset, t.at_offset),
    gtid_set = coalesce(excluded.gtid_set, t.gtid_set)
