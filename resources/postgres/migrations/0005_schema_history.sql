-- The history of structures: every version of every table of the server by the place it
-- holds from, every statement that made one; what happens to tables between their changes;
-- where a table stopped, and what a person ordered about it.

-- Texts that a source decides may hold what jsonb and text refuse (NUL, lone surrogates);
-- json keeps them escaped.

create function lockstep.while_capturing() returns trigger language plpgsql as $$
begin
    if not exists (select from lockstep.batches b where b.id = new.batch and b.state = 'capturing') then
        perform lockstep.refuse(tg_argv[0],
            'rows of ' || tg_table_name || ' are recorded while their batch is capturing');
    end if;
    return new;
end
$$;

-- statements ------------------------------------------------------------------------

create table lockstep.schema_statements (
    id bigint generated always as identity constraint schema_statements_pk primary key,
    source text not null,
    batch bigint not null,
    begin_base text not null,
    begin_number bigint not null,
    begin_offset bigint not null,
    end_base text not null,
    end_number bigint not null,
    end_offset bigint not null,
    gtid text not null,
    committed_at timestamptz,
    database json not null,
    text json not null,
    context json not null,
    outcome text not null constraint schema_statements_outcome_known check (
        outcome in ('followed', 'partly', 'not understood')
    ),
    effects json not null,
    constraint schema_statements_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint schema_statements_of_source unique (source, id)
);

create trigger schema_statements_begin before insert on lockstep.schema_statements
    for each row execute function lockstep.while_capturing('schema_statements_while_capturing');
create trigger schema_statements_stay before update or delete on lockstep.schema_statements
    for each row execute function lockstep.stays('schema_statements_stay');

-- databases -------------------------------------------------------------------------

create table lockstep.database_versions (
    id bigint generated always as identity constraint database_versions_pk primary key,
    source text not null,
    name text not null,
    batch bigint not null,
    since_base text not null,
    since_number bigint not null,
    since_offset bigint not null,
    charset text,
    collation_name text,
    statement bigint,
    constraint database_versions_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint database_versions_statement foreign key (source, statement)
        references lockstep.schema_statements (source, id),
    constraint database_versions_whole check ((charset is null) = (collation_name is null))
);

create index database_versions_at on lockstep.database_versions (
    source, name, batch, since_number, since_offset, id
);
create trigger database_versions_begin before insert on lockstep.database_versions
    for each row execute function lockstep.while_capturing('database_versions_while_capturing');
create trigger database_versions_stay before update or delete on lockstep.database_versions
    for each row execute function lockstep.stays('database_versions_stay');

-- tables' versions ------------------------------------------------------------------

-- `structure` is how versions were kept before: a table map's columns.
alter table lockstep.table_versions
    alter column structure drop not null,
    add column since_base text,
    add column since_number bigint,
    add column since_offset bigint,
    add column knowledge text not null default 'known',
    add column origin text not null default 'table map',
    add column schema json,
    add column fingerprint text,
    add column columns_from text[],
    add column statement bigint,
    add column reason text,
    add column generation integer not null default 1
        constraint table_versions_generation_counts check (generation > 0);

alter table lockstep.table_versions disable trigger table_versions_stay;
update lockstep.table_versions v set
    since_base = coalesce(p.at[1], b.start_base),
    since_number = coalesce(p.at[2]::bigint, b.start_number),
    since_offset = coalesce(p.at[3]::bigint, b.start_offset)
from (select source, database, name, version,
             regexp_match(first_seen, '^(.+)\.([0-9]{1,10}):([0-9]{1,18})$') as at
      from lockstep.table_versions) p,
     lockstep.batches b
where (p.source, p.database, p.name, p.version) = (v.source, v.database, v.name, v.version)
  and b.id = v.batch;
-- A version outlived its batch: the next capture went on with it. It is that one's now.
update lockstep.table_versions v set batch = later.batch
from (select s.source, s.database, s.name, s.schema_version, min(s.batch) as batch
      from lockstep.segments s
      join lockstep.batches b on b.id = s.batch and b.state <> 'abandoned'
      group by s.source, s.database, s.name, s.schema_version) later,
     lockstep.batches b
where (later.source, later.database, later.name, later.schema_version)
    = (v.source, v.database, v.name, v.version)
  and b.id = v.batch and b.state = 'abandoned';
alter table lockstep.table_versions enable trigger table_versions_stay;

alter table lockstep.table_versions
    drop column first_seen,
    alter column since_base set not null,
    alter column since_number set not null,
    alter column since_offset set not null,
    alter column knowledge drop default,
    alter column origin drop default,
    alter column generation drop default,
    add constraint table_versions_statement foreign key (source, statement)
        references lockstep.schema_statements (source, id),
    add constraint table_versions_knowledge_known check (knowledge in ('known', 'dropped', 'unknown')),
    add constraint table_versions_origin_known check (
        origin in ('baseline', 'statement', 'table map', 'carried', 'person')
    ),
    add constraint table_versions_schema_told check (
        num_nonnulls(schema, structure) = case knowledge when 'known' then 1 else 0 end
        and (schema is null) = (fingerprint is null)
    ),
    add constraint table_versions_columns_told check (knowledge = 'known' or columns_from is null),
    add constraint table_versions_unknown_explained check (
        (knowledge = 'unknown') = (reason is not null)
    );

create index table_versions_at on lockstep.table_versions (
    source, database, name, batch, since_number, since_offset, version
);
-- Every table has exactly one version 1: the list of all tables.
create index table_versions_first on lockstep.table_versions (source, database, name) where version = 1;

create trigger table_versions_begin before insert on lockstep.table_versions
    for each row execute function lockstep.while_capturing('table_versions_while_capturing');

create or replace function lockstep.segments_begin() returns trigger language plpgsql as $$
begin
    if not exists (select from lockstep.batches b where b.id = new.batch and b.state = 'capturing') then
        perform lockstep.refuse('segments_while_capturing', 'segments are recorded while their batch is capturing');
    end if;
    if exists (select from lockstep.table_versions v
               where (v.source, v.database, v.name, v.version)
                   = (new.source, new.database, new.name, new.schema_version)
               and v.knowledge <> 'known') then
        perform lockstep.refuse('segments_of_known_versions', 'the version has no columns');
    end if;
    return new;
end
$$;

-- what happens between changes -------------------------------------------------------

create table lockstep.table_events (
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    ordinal integer not null constraint table_events_ordinal_counts check (ordinal >= 0),
    kind text not null constraint table_events_kind_known check (
        kind in ('created', 'changed', 'truncated', 'dropped', 'reread')
    ),
    sequence bigint not null,
    version integer not null,
    place_base text not null,
    place_number bigint not null,
    place_offset bigint not null,
    reason text,
    constraint table_events_pk primary key (batch, database, name, ordinal),
    constraint table_events_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint table_events_table foreign key (source, database, name) references lockstep.table_states,
    constraint table_events_version foreign key (source, database, name, version)
        references lockstep.table_versions,
    constraint table_events_reread_explained check (kind <> 'reread' or reason is not null)
);

create function lockstep.table_events_begin() returns trigger language plpgsql as $$
begin
    if exists (select from lockstep.table_events e
               where (e.batch, e.database, e.name) = (new.batch, new.database, new.name)
               and (e.ordinal < new.ordinal and e.sequence > new.sequence
                    or e.ordinal > new.ordinal and e.sequence < new.sequence)) then
        perform lockstep.refuse('table_events_ascend', 'an event lies before an earlier one');
    end if;
    return new;
end
$$;

create trigger table_events_begin before insert on lockstep.table_events
    for each row execute function lockstep.while_capturing('table_events_while_capturing');
create trigger table_events_order before insert on lockstep.table_events
    for each row execute function lockstep.table_events_begin();
create trigger table_events_stay before update or delete on lockstep.table_events
    for each row execute function lockstep.stays('table_events_stay');

create table lockstep.snapshots (
    id bigint generated always as identity constraint snapshots_pk primary key,
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    version integer not null,
    low_sequence bigint not null,
    constraint snapshots_once unique (batch, database, name),
    constraint snapshots_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint snapshots_table foreign key (source, database, name) references lockstep.table_states,
    constraint snapshots_version foreign key (source, database, name, version)
        references lockstep.table_versions
);

create table lockstep.snapshot_files (
    snapshot bigint not null constraint snapshot_files_snapshot references lockstep.snapshots,
    ordinal integer not null,
    path text not null,
    images bigint not null,
    size bigint not null,
    sha256 text not null constraint snapshot_files_digest check (sha256 ~ '^[0-9a-f]{64}$'),
    constraint snapshot_files_pk primary key (snapshot, ordinal),
    constraint snapshot_files_once unique (snapshot, path),
    constraint snapshot_files_counts check (ordinal >= 0 and images >= 0 and size >= 0)
);

create trigger snapshots_begin before insert on lockstep.snapshots
    for each row execute function lockstep.while_capturing('snapshots_while_capturing');
create trigger snapshots_stay before update or delete on lockstep.snapshots
    for each row execute function lockstep.stays('snapshots_stay');
create trigger snapshot_files_stay before update or delete on lockstep.snapshot_files
    for each row execute function lockstep.stays('snapshot_files_stay');

create or replace function lockstep.batches_may_be_captured(a_batch lockstep.batches) returns void language plpgsql as $$
begin
    if exists (select from lockstep.segments s where s.batch = a_batch.id
               and (s.first_sequence <= a_batch.base or s.last_sequence > a_batch.base + a_batch.changes))
    or exists (select from lockstep.table_events e where e.batch = a_batch.id
               and e.sequence not between a_batch.base and a_batch.base + a_batch.changes)
    or exists (select from lockstep.snapshots s where s.batch = a_batch.id
               and s.low_sequence not between a_batch.base and a_batch.base + a_batch.changes) then
        perform lockstep.refuse('batches_sequences_within', 'a sequence lies outside its batch');
    end if;
end
$$;

-- Tables with something to merge in a batch, perhaps several times.
create view lockstep.touched as
    select source, batch, database, name from lockstep.segments
    union all
    select source, batch, database, name from lockstep.table_events;

-- where tables stopped ---------------------------------------------------------------

-- `mirror_version`: the schema version that the mirror shows. `stopped_*`: how far the table
-- was captured. `behind_batch`: the oldest batch that its mirror lacks, once the others have
-- gone on without it.
alter table lockstep.table_states
    add column mirror_version integer,
    add column changelog_generation integer not null default 1,
    add column stopped_batch bigint,
    add column stopped_base text,
    add column stopped_number bigint,
    add column stopped_offset bigint,
    add column behind_batch bigint,
    drop constraint table_states_condition_known,
    drop constraint table_states_quarantine_explained,
    add constraint table_states_condition_known check (
        condition in ('active', 'quarantined', 'paused', 'dropped')
    ),
    add constraint table_states_quarantine_explained check (
        num_nonnulls(reason, hint, position) = case when condition in ('quarantined', 'paused') then 3 else 0 end
    ),
    add constraint table_states_stopped check (
        num_nonnulls(stopped_batch, stopped_base, stopped_number, stopped_offset) = case
            when condition = 'active' or condition = 'quarantined' and stopped_batch is null then 0
            else 4
        end
    ),
    add constraint table_states_changelog_counts check (changelog_generation > 0),
    add constraint table_states_stopped_batch foreign key (source, stopped_batch)
        references lockstep.batches (source, id),
    add constraint table_states_behind_batch foreign key (source, behind_batch)
        references lockstep.batches (source, id),
    add constraint table_states_mirror_version foreign key (source, database, name, mirror_version)
        references lockstep.table_versions;

-- A mirror without an open write shows the version of the last one that was settled.
update lockstep.table_states t set mirror_version = (
    select max(s.schema_version) from lockstep.segments s
    join lockstep.writes w using (source, database, name)
    where (t.source, t.database, t.name) = (s.source, s.database, s.name)
      and w.step = 'merge' and w.settled_at is not null and s.batch between w.first_batch and w.last_batch
);

-- Set aside before: at a place of the log that a live batch read, if the position is one.
update lockstep.table_states t set
    stopped_batch = b.id, stopped_base = b.end_base,
    stopped_number = p.at[2]::bigint, stopped_offset = p.at[3]::bigint
from (select source, database, name, regexp_match(position, '^(.+)\.([0-9]{1,10}):([0-9]{1,18})$') as at
      from lockstep.table_states where condition = 'quarantined') p,
     lockstep.batches b
where (p.source, p.database, p.name) = (t.source, t.database, t.name)
  and b.id = (
      select max(c.id) from lockstep.batches c
      where c.source = t.source and c.state in ('captured', 'merged', 'acknowledged')
        and c.start_base = p.at[1] and c.end_base = p.at[1]
        and (p.at[2]::bigint, p.at[3]::bigint)
            between (c.start_number, c.start_offset) and (c.end_number, c.end_offset)
  );

-- Otherwise it stopped behind the last batch that has changes of it.
update lockstep.table_states t set
    stopped_batch = b.id, stopped_base = b.end_base, stopped_number = b.end_number, stopped_offset = b.end_offset
from lockstep.batches b
where t.condition = 'quarantined' and t.stopped_batch is null
  and b.id = (
      select max(s.batch) from lockstep.segments s
      join lockstep.batches c on c.id = s.batch and c.state in ('captured', 'merged', 'acknowledged')
      where (s.source, s.database, s.name) = (t.source, t.database, t.name)
  );

-- The oldest live batch from a_from on with something of the table that no settled write
-- covers; without a_from, the oldest of those that are not merged.
create function lockstep.behind(a_source text, a_database text, a_name text, a_from bigint) returns bigint
language sql stable as $$
    select min(t.batch) from lockstep.touched t
    join lockstep.batches b on b.id = t.batch and b.state <> 'abandoned'
    where (t.source, t.database, t.name) = (a_source, a_database, a_name)
      and t.batch >= coalesce(a_from, (
          select min(u.id) from lockstep.batches u
          where u.source = a_source and u.state in ('capturing', 'captured', 'merged')))
      and not lockstep.covered(a_source, a_database, a_name, t.batch)
$$;

update lockstep.table_states t set behind_batch = lockstep.behind(t.source, t.database, t.name, 0)
where t.condition = 'quarantined';

create or replace view lockstep.waiting as
    select distinct s.source, s.batch, s.database, s.name
    from lockstep.touched s
    join lockstep.batches b on b.id = s.batch and b.state = 'captured'
    join lockstep.table_states t
        on (t.source, t.database, t.name) = (s.source, s.database, s.name)
    where t.condition in ('active', 'dropped')
      and not lockstep.covered(s.source, s.database, s.name, s.batch);

create or replace function lockstep.writes_begin() returns trigger language plpgsql as $$
declare
    the_table lockstep.table_states;
begin
    select * into the_table from lockstep.table_states t
    where (t.source, t.database, t.name) = (new.source, new.database, new.name);
    if new.settled_at is not null then
        perform lockstep.refuse('writes_intent_first', 'a write is an intent before it is settled');
    end if;
    if exists (select from lockstep.batches b where b.source = new.source
               and b.id in (new.first_batch, new.last_batch) and b.state <> 'captured'
               and (b.state not in ('merged', 'acknowledged')
                    or b.id < the_table.behind_batch or the_table.behind_batch is null)) then
        perform lockstep.refuse('writes_of_captured_batches', 'only captured batches are merged');
    end if;
    if the_table.condition not in ('active', 'dropped') then
        perform lockstep.refuse('writes_of_active_tables', 'the table is set aside');
    end if;
    if exists (select from lockstep.writes w
               where (w.source, w.database, w.name, w.app_id, w.step)
                   = (new.source, new.database, new.name, new.app_id, new.step)
               and w.settled_at is not null
               and w.first_batch <= new.last_batch and new.first_batch <= w.last_batch) then
        perform lockstep.refuse('writes_never_overlap', 'a settled write of this table covers these batches');
    end if;
    return new;
end
$$;

create function lockstep.writes_settled() returns trigger language plpgsql as $$
begin
    update lockstep.table_states t set behind_batch = lockstep.behind(t.source, t.database, t.name, t.behind_batch)
    where (t.source, t.database, t.name) = (new.source, new.database, new.name)
      and t.behind_batch is not null;
    return null;
end
$$;

create trigger writes_settled after update on lockstep.writes
    for each row when (new.settled_at is not null) execute function lockstep.writes_settled();

create or replace function lockstep.batches_may_be_abandoned(a_batch lockstep.batches) returns void language plpgsql as $$
begin
    if exists (select from lockstep.batches b where b.follows = a_batch.id and b.state <> 'abandoned') then
        perform lockstep.refuse('batches_abandoned_newest_first', 'a later batch goes on behind it');
    end if;
    if exists (select from lockstep.touched s
               join lockstep.writes w using (source, database, name)
               where s.batch = a_batch.id and a_batch.id between w.first_batch and w.last_batch) then
        perform lockstep.refuse('batches_abandoned_unmerged', 'a write to a mirror covers the batch');
    end if;
end
$$;

-- orders ----------------------------------------------------------------------------

-- The newest order of a table counts. `stopped_*` and `aside_*` are those of the table when
-- the order was carried out, for the case that the batch that did is abandoned.
create table lockstep.table_orders (
    id bigint generated always as identity constraint table_orders_pk primary key,
    source text not null,
    token bigint not null,
    database text not null,
    name text not null,
    kind text not null constraint table_orders_kind_known check (kind in ('pause', 'resume', 'release')),
    author text not null constraint table_orders_authored check (btrim(author) <> ''),
    reason text not null,
    ordered_at timestamptz not null default clock_timestamp(),
    schema json constraint table_orders_schema_released check (schema is null or kind = 'release'),
    done_batch bigint,
    stopped_batch bigint,
    stopped_base text,
    stopped_number bigint,
    stopped_offset bigint,
    aside_reason text,
    aside_hint text,
    aside_position text,
    constraint table_orders_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint table_orders_table foreign key (source, database, name) references lockstep.table_states,
    constraint table_orders_done_batch foreign key (source, done_batch) references lockstep.batches (source, id),
    constraint table_orders_pause_at_once check (kind <> 'pause' or done_batch is null)
);

create index table_orders_newest on lockstep.table_orders (source, database, name, id);
create index table_orders_done on lockstep.table_orders (done_batch) where done_batch is not null;

create function lockstep.table_orders_begin() returns trigger language plpgsql as $$
declare
    found text;
    place bigint;
begin
    select t.condition, t.stopped_batch into found, place from lockstep.table_states t
    where (t.source, t.database, t.name) = (new.source, new.database, new.name);
    if new.done_batch is not null then
        perform lockstep.refuse('table_orders_begin_open', 'an order begins as open');
    end if;
    if new.kind = 'pause' and found <> 'active' then
        perform lockstep.refuse('table_orders_pause_active', 'the table is not active');
    end if;
    if new.kind = 'resume' and found <> 'paused' then
        perform lockstep.refuse('table_orders_resume_paused', 'the table is not paused');
    end if;
    if new.kind = 'release' and found <> 'quarantined' then
        perform lockstep.refuse('table_orders_release_quarantined', 'the table is not quarantined');
    end if;
    if new.kind in ('resume', 'release') and place is null then
        perform lockstep.refuse('table_orders_place_known', 'nobody knows where the table stopped');
    end if;
    return new;
end
$$;

create function lockstep.table_orders_move() returns trigger language plpgsql as $$
begin
    if (new.id, new.source, new.token, new.database, new.name, new.kind, new.author, new.reason,
        new.ordered_at, new.schema::text)
        is distinct from
       (old.id, old.source, old.token, old.database, old.name, old.kind, old.author, old.reason,
        old.ordered_at, old.schema::text) then
        perform lockstep.refuse('table_orders_stay', 'an order stays as it was given');
    end if;
    if old.done_batch is not null and (new.done_batch is not null or not exists (
        select from lockstep.batches b where b.id = old.done_batch and b.state = 'abandoned')) then
        perform lockstep.refuse('table_orders_done_once', 'a live batch carried it out');
    end if;
    if new.done_batch is not null and exists (
        select from lockstep.table_orders o
        where (o.source, o.database, o.name) = (new.source, new.database, new.name) and o.id > new.id) then
        perform lockstep.refuse('table_orders_newest_counts', 'there is a newer order');
    end if;
    if new.done_batch is not null and exists (
        select from lockstep.batches b where b.id = new.done_batch and b.state <> 'capturing') then
        perform lockstep.refuse('table_orders_done_while_capturing', 'the batch is not capturing');
    end if;
    return new;
end
$$;

create trigger table_orders_begin before insert on lockstep.table_orders
    for each row execute function lockstep.table_orders_begin();
create trigger table_orders_move before update on lockstep.table_orders
    for each row execute function lockstep.table_orders_move();
create trigger table_orders_stay before delete on lockstep.table_orders
    for each row execute function lockstep.stays('table_orders_stay');

-- what an abandoned batch leaves -------------------------------------------------------

-- A batch may have ended a transaction and prepared another of the same XID: its own go
-- first, or both would be open for a moment.
-- Orders that the batch carried out are open again, and their tables stand where they
-- stood; what it dropped is there again; other tables that stopped in it stopped at its
-- start, for all that it read is read again.
create or replace function lockstep.batches_abandoned() returns trigger language plpgsql as $$
begin
    update lockstep.prepared set abandoned = true, ended_by = null, committed = null
    where batch = new.id;
    update lockstep.prepared set ended_by = null, committed = null
    where source = new.source and ended_by = new.id;

    update lockstep.table_states t set
        condition = case when t.condition in ('quarantined', 'paused') then t.condition
                         when o.kind = 'resume' then 'paused' else 'quarantined' end,
        reason = coalesce(t.reason, o.aside_reason),
        hint = coalesce(t.hint, o.aside_hint),
        position = coalesce(t.position, o.aside_position),
        stopped_batch = o.stopped_batch, stopped_base = o.stopped_base,
        stopped_number = o.stopped_number, stopped_offset = o.stopped_offset
    from lockstep.table_orders o
    where o.done_batch = new.id
      and (t.source, t.database, t.name) = (o.source, o.database, o.name);
    update lockstep.table_orders set
        done_batch = null, stopped_batch = null, stopped_base = null, stopped_number = null,
        stopped_offset = null, aside_reason = null, aside_hint = null, aside_position = null
    where done_batch = new.id;

    update lockstep.table_states set
        condition = 'active', stopped_batch = null, stopped_base = null, stopped_number = null,
        stopped_offset = null
    where source = new.source and stopped_batch = new.id and condition = 'dropped';
    update lockstep.table_states set
        stopped_base = new.start_base, stopped_number = new.start_number,
        stopped_offset = new.start_offset
    where source = new.source and stopped_batch = new.id;

    update lockstep.table_states t set behind_batch = lockstep.behind(t.source, t.database, t.name, t.behind_batch)
    where t.source = new.source and t.behind_batch is not null;
    return null;
end
$$;
