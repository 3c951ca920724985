-- Commits that show the rows of an earlier version in other files.

-- name: upkept
select mirror, max(delta_version) as delta_version from lockstep.upkept
where source = %(source)s
group by mirror

-- name: note_upkept
insert into lockstep.upkept (source, mirror, delta_version, shows, token)
values (%(source)s, %(mirror)s, %(delta_version)s, %(shows)s, %(token)s)
on conflict (source, mirror, delta_version) do nothing

-- name: ledger_clock
select clock_timestamp() as moment
