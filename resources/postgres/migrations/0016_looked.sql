-- A ledger has a name of its own, which its lake's folders and commits carry; and it keeps up to
-- which Delta version it looked at the log of each table in its lake.

create table lockstep.ledger (
    id uuid not null constraint ledger_pk primary key,
    made_at timestamptz not null default clock_timestamp(),
    alone boolean not null default true constraint ledger_alone unique,
    constraint ledger_alone_counts check (alone)
);

insert into lockstep.ledger (id) values (gen_random_uuid());

create trigger ledger_stays before update or delete on lockstep.ledger
for each row execute function lockstep.stays('ledger_stays');

create table lockstep.looked (
    source text not null constraint looked_source references lockstep.sources,
    folder text not null,
    delta_version bigint not null,
    constraint looked_pk primary key (source, folder),
    constraint looked_version_counts check (delta_version >= 0)
);
