-- Entries of mirrors in a catalog. One is noted before it is made, without saying what it is like, and
-- again once it was: whatever a killed run left there is known as Lockstep's. Two tables of a source
-- never have the same name in a catalog.

create table lockstep.registrations (
    source text not null,
    catalog text not null,
    database text not null,
    name text not null,
    schema_name text not null,
    table_name text not null,
    location text not null,
    content text,
    shows integer,
    constraint registrations_pk primary key (source, catalog, database, name),
    constraint registrations_source foreign key (source) references lockstep.sources (name),
    constraint registrations_name unique (source, catalog, schema_name, table_name),
    constraint registrations_made check ((content is null) = (shows is null))
);

-- Up to which statement of the source entries follow comments, which are no part of structures.
create table lockstep.catalogs (
    source text not null,
    catalog text not null,
    statement bigint not null,
    constraint catalogs_pk primary key (source, catalog),
    constraint catalogs_source foreign key (source) references lockstep.sources (name),
    constraint catalogs_statement_counts check (statement >= 0)
);
