-- Entries of mirrors in catalogs.

-- name: registrations
select database, name, schema_name, table_name, location, content, shows
from lockstep.registrations
where source = %(source)s and catalog = %(catalog)s
order by database, name

-- name: note_registration
insert into lockstep.registrations (
    source, catalog, database, name, schema_name, table_name, location, content, shows
) values (
    %(source)s, %(catalog)s, %(database)s, %(name)s, %(schema_name)s, %(table_name)s, %(location)s,
    %(content)s, %(shows)s
)
on conflict on constraint registrations_pk do update set
    schema_name = excluded.schema_name,
    table_name = excluded.table_name,
    location = excluded.location,
    content = excluded.content,
    shows = excluded.shows

-- name: forget_registration
delete from lockstep.registrations
where source = %(source)s and catalog = %(catalog)s
  and database = %(database)s and name = %(name)s

-- name: registered_up_to
select statement from lockstep.catalogs where source = %(source)s and catalog = %(catalog)s

-- name: note_registered_up_to
insert into lockstep.catalogs (source, catalog, statement)
values (%(source)s, %(catalog)s, %(statement)s)
on conflict on constraint catalogs_pk do update set statement = excluded.statement
