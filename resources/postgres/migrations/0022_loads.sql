-- A table that is older than the log is read from the source, chunk by chunk, over as many runs as
-- it takes. A chunk that was read is never read again, whatever happens to the run.

create table lockstep.loads (
    id bigint generated always as identity,
    source text not null,
    token bigint not null,
    database text not null,
    name text not null,
    author text not null,
    reason text not null,
    ordered_at timestamptz not null default clock_timestamp(),
    schema json,
    server_uuid text,
    low_base text,
    low_number bigint,
    low_offset bigint,
    estimated_rows bigint,
    followed_batch bigint,
    followed_sequence bigint,
    followed_version integer,
    joined_batch bigint,
    void text,
    constraint loads_pk primary key (id),
    constraint loads_source foreign key (source) references lockstep.sources (name),
    constraint loads_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint loads_authored check (btrim(author) <> '' and btrim(reason) <> ''),
    constraint loads_reading check (
        num_nonnulls(schema, server_uuid, low_base, low_number, low_offset) in (0, 5)),
    constraint loads_estimate_counts check (estimated_rows >= 0),
    constraint loads_followed check (
        num_nonnulls(followed_batch, followed_sequence, followed_version) in (0, 3)),
    constraint loads_followed_while_read check (followed_batch is null or schema is not null),
    constraint loads_followed_batch foreign key (source, followed_batch)
        references lockstep.batches (source, id),
    constraint loads_followed_version foreign key (source, database, name, followed_version)
        references lockstep.table_versions (source, database, name, version),
    constraint loads_joined_batch foreign key (source, joined_batch)
        references lockstep.batches (source, id),
    constraint loads_joined_behind check (joined_batch >= followed_batch),
    constraint loads_joined_followed check (joined_batch is null or followed_batch is not null),
    constraint loads_void_explained check (btrim(void) <> ''),
    constraint loads_end_once check (joined_batch is null or void is null)
);

create unique index loads_one_open on lockstep.loads (source, database, name)
    where joined_batch is null and void is null;
create index loads_joined on lockstep.loads (joined_batch) where joined_batch is not null;
create index loads_followed on lockstep.loads (followed_batch) where followed_batch is not null;

create table lockstep.load_chunks (
    load bigint not null,
    number integer not null,
    after json,
    through json,
    low_base text,
    low_number bigint,
    low_offset bigint,
    high_base text,
    high_number bigint,
    high_offset bigint,
    rows bigint,
    seconds double precision,
    constraint load_chunks_pk primary key (load, number),
    constraint load_chunks_load foreign key (load) references lockstep.loads (id),
    constraint load_chunks_counts check (number >= 0),
    constraint load_chunks_begin check ((number = 0) = (after is null)),
    constraint load_chunks_read check (
        num_nonnulls(low_base, low_number, low_offset, high_base, high_number, high_offset, rows,
                     seconds) in (0, 8)),
    constraint load_chunks_rows_count check (rows >= 0 and seconds >= 0)
);

create table lockstep.load_files (
    load bigint not null,
    number integer not null,
    ordinal integer not null,
    path text not null,
    images bigint not null,
    size bigint not null,
    sha256 text not null,
    constraint load_files_pk primary key (load, number, ordinal),
    constraint load_files_chunk foreign key (load, number)
        references lockstep.load_chunks (load, number),
    constraint load_files_counts check (images > 0 and size > 0),
    constraint load_files_path check (path <> '')
);

create function lockstep.loads_move() returns trigger language plpgsql as $$
begin
    if old.void is not null then
        perform lockstep.refuse('loads_void_once', 'a load that is void stays so');
    end if;
    if old.schema is not null and (
        new.schema::text, new.server_uuid, new.low_base, new.low_number, new.low_offset)
        is distinct from (
        old.schema::text, old.server_uuid, old.low_base, old.low_number, old.low_offset) then
        perform lockstep.refuse('loads_read_once', 'what a load was begun with stays');
    end if;
    if new.joined_batch is not null and old.joined_batch is null and (
            not exists (select from lockstep.load_chunks c
                        where c.load = new.id and c.through is null)
            or exists (select from lockstep.load_chunks c
                       where c.load = new.id and c.rows is null)) then
        perform lockstep.refuse('loads_joined_whole', 'not all of its chunks are read');
    end if;
    return new;
end
$$;

create trigger loads_move before update on lockstep.loads
    for each row execute function lockstep.loads_move();

create function lockstep.load_chunks_begin() returns trigger language plpgsql as $$
begin
    if not exists (select from lockstep.loads l where l.id = new.load and l.schema is not null
                   and l.joined_batch is null and l.void is null) then
        perform lockstep.refuse('load_chunks_while_reading', 'the load is not being read');
    end if;
    if tg_op = 'INSERT' and new.number > 0 and not exists (
            select from lockstep.load_chunks c
            where c.load = new.load and c.number = new.number - 1
              and c.through::text = new.after::text) then
        perform lockstep.refuse('load_chunks_go_on', 'a chunk begins where the one before it ends');
    end if;
    if tg_op = 'UPDATE' and (old.rows is not null
            or (new.after::text, new.through::text) is distinct from
               (old.after::text, old.through::text)) then
        perform lockstep.refuse('load_chunks_read_once', 'a chunk that was read stays as it is');
    end if;
    return new;
end
$$;

create trigger load_chunks_begin before insert or update on lockstep.load_chunks
    for each row execute function lockstep.load_chunks_begin();

-- A table that is loading: its log is captured, and merged once its rows are there.
alter table lockstep.table_life
    drop constraint table_life_known,
    add constraint table_life_known check (
        life in ('active', 'loading', 'quarantined', 'paused', 'dropped')),
    drop constraint table_life_event_known,
    add constraint table_life_event_known check (event in (
        'recorded', 'followed', 'load begun', 'loaded', 'dropped', 'quarantined', 'paused',
        'reloaded', 'rejoined', 'mirror written', 'mirror handed over', 'mirror replaced',
        'mirror removed', 'lake restarted', 'batch abandoned'));
alter table lockstep.table_states
    drop constraint table_states_condition_known,
    add constraint table_states_condition_known check (
        condition in ('active', 'loading', 'quarantined', 'paused', 'dropped')),
    drop constraint table_states_stopped,
    add constraint table_states_stopped check (
        num_nonnulls(stopped_batch, stopped_base, stopped_number, stopped_offset) = case
            when condition in ('active', 'loading') then 0
            when condition in ('quarantined', 'paused') and stopped_batch is null then 0
            else 4 end);

-- What was read in earlier batches belongs behind a change of one of those.
create or replace function lockstep.batches_may_be_captured(a_batch lockstep.batches)
returns void language plpgsql as $$
begin
    if exists (select from lockstep.segments s where s.batch = a_batch.id
               and (s.first_sequence <= a_batch.base or s.last_sequence > a_batch.base + a_batch.changes))
    or exists (select from lockstep.table_events e where e.batch = a_batch.id
               and e.sequence not between a_batch.base and a_batch.base + a_batch.changes)
    or exists (select from lockstep.snapshots s where s.batch = a_batch.id
               and s.low_sequence not between a_batch.base and a_batch.base + a_batch.changes
               and not exists (
                   select from lockstep.loads l where l.joined_batch = a_batch.id
                   and (l.source, l.database, l.name) = (s.source, s.database, s.name)
                   and l.followed_sequence = s.low_sequence)) then
        perform lockstep.refuse('batches_sequences_within', 'a sequence lies outside its batch');
    end if;
end
$$;

-- What a batch said of loads is undone with it; chunks that were read are kept.
create or replace function lockstep.batches_abandoned() returns trigger language plpgsql as $$
begin
    update lockstep.prepared set abandoned = true, ended_by = null, committed = null
    where batch = new.id;
    update lockstep.prepared set ended_by = null, committed = null
    where source = new.source and ended_by = new.id;
    update lockstep.table_orders set done_batch = null where done_batch = new.id;
    update lockstep.loads l set joined_batch = null, void = (
        select 'another one was ordered since' from lockstep.loads o
        where (o.source, o.database, o.name) = (l.source, l.database, l.name)
          and o.id <> l.id and o.joined_batch is null and o.void is null)
    where l.joined_batch = new.id;
    update lockstep.loads set
        followed_batch = null, followed_sequence = null, followed_version = null
    where followed_batch = new.id and void is null;
    return null;
end
$$;
