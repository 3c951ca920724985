-- What the ledger keeps of its lake.

-- name: identity
select id::text as id from lockstep.ledger

-- name: looked
select folder, delta_version from lockstep.looked where source = %(source)s order by folder

-- name: note_looked
insert into lockstep.looked (source, folder, delta_version)
values (%(source)s, %(folder)s, %(delta_version)s)
on conflict (source, folder) do update set delta_version = excluded.delta_version

-- name: forget_looked
delete from lockstep.looked where source = %(source)s and folder = %(folder)s

-- name: number_above
select setval(pg_get_serial_sequence('lockstep.batches', 'id'),
              greatest(%(batch)s, nextval(pg_get_serial_sequence('lockstep.batches', 'id')))),
       setval('lockstep.txn_versions',
              greatest(%(txn_version)s, nextval('lockstep.txn_versions')))

-- name: forget_inherited
delete from lockstep.inherited where source = %(source)s

-- name: inherit
insert into lockstep.inherited (source, above, through)
values (%(source)s, %(above)s, %(through)s)

-- name: inherited
select above, through from lockstep.inherited where source = %(source)s order by above
