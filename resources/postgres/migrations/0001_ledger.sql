-- The ledger: batches, their segments, the tables and the writes that merge them.
-- What code might forget is held here; every rule has a constraint's name, and
-- resources/ledger_rules.py has a sentence for each name.

create function lockstep.refuse(rule text, complaint text) returns void
language plpgsql as $$
begin
    raise exception using errcode = 'integrity_constraint_violation', constraint = rule, message = complaint;
end
$$;

create function lockstep.stays() returns trigger language plpgsql as $$
begin
    perform lockstep.refuse(tg_argv[0], 'rows of ' || tg_table_name || ' are never changed or deleted');
    return null;
end
$$;

-- sources and who may write for them ------------------------------------------------

create table lockstep.sources (
    name text constraint sources_pk primary key,
    lock_key integer not null generated always as identity constraint sources_lock_key unique,
    token bigint not null default 0 constraint sources_token_counts check (token >= 0),
    first_seen timestamptz not null default now()
);

create function lockstep.sources_move() returns trigger language plpgsql as $$
begin
    if new.name <> old.name or new.lock_key <> old.lock_key or new.token < old.token then
        perform lockstep.refuse('sources_token_grows', 'a source keeps its key and its token never falls');
    end if;
    return new;
end
$$;

create trigger sources_move before update on lockstep.sources
    for each row execute function lockstep.sources_move();

create table lockstep.leases (
    source text not null constraint leases_source references lockstep.sources,
    token bigint not null constraint leases_token_counts check (token > 0),
    holder text not null,
    dagster_run text,
    backend_pid integer not null,
    taken_at timestamptz not null default clock_timestamp(),
    constraint leases_pk primary key (source, token)
);

create trigger leases_stay before update or delete on lockstep.leases
    for each row execute function lockstep.stays('leases_stay');

create table lockstep.decisions (
    id bigint generated always as identity constraint decisions_pk primary key,
    source text not null,
    token bigint not null,
    kind text not null,
    rule text not null,
    reason text not null,
    facts jsonb not null,
    author text not null,
    decided_at timestamptz not null default clock_timestamp(),
    constraint decisions_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint decisions_of_source unique (source, id)
);

create trigger decisions_stay before update or delete on lockstep.decisions
    for each row execute function lockstep.stays('decisions_stay');

-- batches ---------------------------------------------------------------------------

-- GTID sets grow without bound and an index row may not: keys hold their digest.
create table lockstep.batches (
    id bigint generated always as identity constraint batches_pk primary key,
    source text not null,
    state text not null,
    predecessor bigint,
    start_decision bigint,
    base bigint not null constraint batches_base_counts check (base >= 0),
    token bigint not null,
    created_at timestamptz not null default clock_timestamp(),
    start_base text not null,
    start_number bigint not null,
    start_offset bigint not null,
    start_gtid_set text not null,
    start_gtid_digest text not null generated always as (md5(start_gtid_set)) stored,
    start_server_uuid text not null,
    start_committed_at timestamptz,
    end_base text,
    end_number bigint,
    end_offset bigint,
    end_gtid_set text,
    end_gtid_digest text generated always as (md5(end_gtid_set)) stored,
    end_server_uuid text,
    end_committed_at timestamptz,
    witness_offset bigint,
    witness_length bigint,
    witness_crc32 bigint,
    witness_gtid text,
    witness_file_created bigint,
    changes bigint not null default 0,
    transactions bigint not null default 0,
    log_bytes bigint not null default 0,
    captured_at timestamptz,
    merged_at timestamptz,
    acknowledged_at timestamptz,
    abandoned_at timestamptz,
    abandoned_because text,
    constraint batches_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint batches_of_source unique (source, id),
    constraint batches_end unique (source, id, end_base, end_number, end_offset, end_gtid_digest, end_server_uuid),
    constraint batches_start_at_predecessors_end foreign key (
        source, predecessor, start_base, start_number, start_offset, start_gtid_digest, start_server_uuid
    ) references lockstep.batches (
        source, id, end_base, end_number, end_offset, end_gtid_digest, end_server_uuid
    ),
    constraint batches_start_decision foreign key (source, start_decision)
        references lockstep.decisions (source, id),
    constraint batches_one_origin check (num_nonnulls(predecessor, start_decision) = 1),
    constraint batches_state_known check (
        state in ('capturing', 'captured', 'merged', 'acknowledged', 'abandoned')
    ),
    constraint batches_end_recorded check (
        case state
            when 'capturing' then num_nonnulls(end_base, end_number, end_offset, end_gtid_set, end_server_uuid,
                end_committed_at, witness_offset, witness_length, witness_crc32, witness_gtid,
                witness_file_created, captured_at) = 0
            when 'abandoned' then num_nulls(end_base, end_number, end_offset, end_gtid_set, end_server_uuid,
                witness_offset, witness_length, witness_crc32, witness_gtid,
                witness_file_created, captured_at) in (0, 11)
            else num_nulls(end_base, end_number, end_offset, end_gtid_set, end_server_uuid,
                witness_offset, witness_length, witness_crc32, witness_gtid,
                witness_file_created, captured_at) = 0
        end
    ),
    constraint batches_end_not_before_start check ((end_number, end_offset) >= (start_number, start_offset)),
    constraint batches_totals_count check (
        changes >= 0 and transactions >= 0 and log_bytes >= 0
        and (captured_at is not null or (changes, transactions, log_bytes) = (0, 0, 0))
    ),
    constraint batches_moments check (
        (merged_at is not null) = (state in ('merged', 'acknowledged'))
        and (acknowledged_at is not null) = (state = 'acknowledged')
        and (abandoned_at is not null) = (state = 'abandoned')
        and (abandoned_because is not null) = (state = 'abandoned')
    )
);

create unique index batches_one_capturing on lockstep.batches (source) where state = 'capturing';
create unique index batches_one_successor on lockstep.batches (predecessor) where state <> 'abandoned';
create unique index batches_one_per_decision on lockstep.batches (start_decision) where state <> 'abandoned';
-- Every live batch leads back to a live root, so one live root is one chain.
create unique index batches_one_chain on lockstep.batches (source)
    where predecessor is null and state <> 'abandoned';
create index batches_unfinished on lockstep.batches (source, id)
    where state in ('capturing', 'captured', 'merged');

-- tables ----------------------------------------------------------------------------

create table lockstep.table_states (
    source text not null constraint table_states_source references lockstep.sources,
    database text not null,
    name text not null,
    condition text not null constraint table_states_condition_known check (condition in ('active', 'quarantined')),
    generation integer not null constraint table_states_generation_counts check (generation > 0),
    mirror text not null,
    changelog text not null,
    reason text,
    hint text,
    position text,
    constraint table_states_pk primary key (source, database, name),
    constraint table_states_quarantine_explained check (
        num_nonnulls(reason, hint, position) = case condition when 'quarantined' then 3 else 0 end
    )
);

create table lockstep.table_versions (
    source text not null constraint table_versions_source references lockstep.sources,
    database text not null,
    name text not null,
    version integer not null constraint table_versions_number_counts check (version > 0),
    previous integer generated always as (nullif(version - 1, 0)) stored,
    batch bigint not null,
    structure jsonb not null,
    first_seen text not null,
    constraint table_versions_pk primary key (source, database, name, version),
    constraint table_versions_no_gap foreign key (source, database, name, previous)
        references lockstep.table_versions (source, database, name, version),
    constraint table_versions_batch foreign key (source, batch) references lockstep.batches (source, id)
);

create trigger table_versions_stay before update or delete on lockstep.table_versions
    for each row execute function lockstep.stays('table_versions_stay');

-- segments --------------------------------------------------------------------------

create table lockstep.segments (
    id bigint generated always as identity constraint segments_pk primary key,
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    schema_version integer not null,
    inserted bigint not null,
    updated bigint not null,
    deleted bigint not null,
    first_sequence bigint not null,
    last_sequence bigint not null,
    constraint segments_once unique (batch, database, name, schema_version),
    constraint segments_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint segments_table foreign key (source, database, name) references lockstep.table_states,
    constraint segments_version foreign key (source, database, name, schema_version)
        references lockstep.table_versions,
    constraint segments_counts check (inserted >= 0 and updated >= 0 and deleted >= 0),
    constraint segments_sequences_ascend check (first_sequence <= last_sequence)
);

create table lockstep.segment_files (
    segment bigint not null constraint segment_files_segment references lockstep.segments,
    ordinal integer not null,
    path text not null,
    images bigint not null,
    size bigint not null,
    sha256 text not null constraint segment_files_digest check (sha256 ~ '^[0-9a-f]{64}$'),
    constraint segment_files_pk primary key (segment, ordinal),
    constraint segment_files_once unique (segment, path),
    constraint segment_files_counts check (ordinal >= 0 and images >= 0 and size >= 0)
);

create function lockstep.segments_begin() returns trigger language plpgsql as $$
begin
    if not exists (select from lockstep.batches b where b.id = new.batch and b.state = 'capturing') then
        perform lockstep.refuse('segments_while_capturing', 'segments are recorded while their batch is capturing');
    end if;
    return new;
end
$$;

create trigger segments_begin before insert on lockstep.segments
    for each row execute function lockstep.segments_begin();
create trigger segments_stay before update or delete on lockstep.segments
    for each row execute function lockstep.stays('segments_stay');
create trigger segment_files_stay before update or delete on lockstep.segment_files
    for each row execute function lockstep.stays('segment_files_stay');

-- writes: intents, then settled ------------------------------------------------------

create sequence lockstep.txn_versions;

create table lockstep.writes (
    id bigint generated always as identity constraint writes_pk primary key,
    source text not null,
    token bigint not null,
    database text not null,
    name text not null,
    app_id text not null,
    txn_version bigint not null default nextval('lockstep.txn_versions'),
    first_batch bigint not null,
    last_batch bigint not null,
    step text not null,
    intended_at timestamptz not null default clock_timestamp(),
    delta_version bigint constraint writes_delta_version_counts check (delta_version >= 0),
    settled_at timestamptz,
    constraint writes_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint writes_table foreign key (source, database, name) references lockstep.table_states,
    constraint writes_first_batch foreign key (source, first_batch) references lockstep.batches (source, id),
    constraint writes_last_batch foreign key (source, last_batch) references lockstep.batches (source, id),
    constraint writes_batches_ascend check (first_batch <= last_batch),
    constraint writes_transaction_once unique (app_id, txn_version),
    constraint writes_delta_version_once unique (app_id, delta_version),
    constraint writes_settled_whole check ((delta_version is null) = (settled_at is null))
);

create unique index writes_one_open on lockstep.writes (source, database, name) where settled_at is null;

create function lockstep.writes_begin() returns trigger language plpgsql as $$
begin
    if new.settled_at is not null then
        perform lockstep.refuse('writes_intent_first', 'a write is an intent before it is settled');
    end if;
    if exists (select from lockstep.batches b where b.source = new.source
               and b.id in (new.first_batch, new.last_batch) and b.state <> 'captured') then
        perform lockstep.refuse('writes_of_captured_batches', 'only captured batches are merged');
    end if;
    if exists (select from lockstep.table_states t
               where (t.source, t.database, t.name) = (new.source, new.database, new.name)
               and t.condition <> 'active') then
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

create function lockstep.writes_move() returns trigger language plpgsql as $$
begin
    if (new.id, new.source, new.token, new.database, new.name, new.app_id, new.txn_version,
        new.first_batch, new.last_batch, new.step, new.intended_at)
        is distinct from
       (old.id, old.source, old.token, old.database, old.name, old.app_id, old.txn_version,
        old.first_batch, old.last_batch, old.step, old.intended_at) then
        perform lockstep.refuse('writes_intent_stays', 'an intent is never regrouped');
    end if;
    if old.settled_at is not null then
        perform lockstep.refuse('writes_settled_once', 'a settled write stays as it is');
    end if;
    if exists (select from lockstep.writes w where w.app_id = new.app_id
               and w.delta_version >= new.delta_version) then
        perform lockstep.refuse('writes_delta_version_ascends', 'a later write has a later version');
    end if;
    return new;
end
$$;

create trigger writes_begin before insert on lockstep.writes
    for each row execute function lockstep.writes_begin();
create trigger writes_move before update on lockstep.writes
    for each row execute function lockstep.writes_move();
create trigger writes_stay before delete on lockstep.writes
    for each row execute function lockstep.stays('writes_stay');

-- version sets ----------------------------------------------------------------------

create table lockstep.version_sets (
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    mirror text not null,
    delta_version bigint not null,
    constraint version_sets_pk primary key (batch, database, name),
    constraint version_sets_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint version_sets_table foreign key (source, database, name) references lockstep.table_states
);

create function lockstep.version_sets_begin() returns trigger language plpgsql as $$
begin
    if not exists (select from lockstep.batches b where b.id = new.batch
                   and b.state = 'acknowledged') then
        perform lockstep.refuse('version_sets_acknowledged', 'the batch is not acknowledged');
    end if;
    return new;
end
$$;

create trigger version_sets_begin before insert on lockstep.version_sets
    for each row execute function lockstep.version_sets_begin();
create trigger version_sets_stay before update or delete on lockstep.version_sets
    for each row execute function lockstep.stays('version_sets_stay');

-- what a batch waits for, and how it moves --------------------------------------------

create function lockstep.covered(a_source text, a_database text, a_name text, a_batch bigint) returns boolean
language sql stable as $$
    select exists (
        select from lockstep.writes w
        where (w.source, w.database, w.name) = (a_source, a_database, a_name)
          and w.step = 'merge' and w.settled_at is not null
          and a_batch between w.first_batch and w.last_batch
    )
$$;

create view lockstep.waiting as
    select distinct s.source, s.batch, s.database, s.name
    from lockstep.segments s
    join lockstep.batches b on b.id = s.batch and b.state = 'captured'
    join lockstep.table_states t
        on (t.source, t.database, t.name) = (s.source, s.database, s.name)
    where t.condition = 'active' and not lockstep.covered(s.source, s.database, s.name, s.batch);

create function lockstep.batches_begin() returns trigger language plpgsql as $$
declare
    earlier lockstep.batches;
begin
    if new.state <> 'capturing' then
        perform lockstep.refuse('batches_begin_capturing', 'a batch begins as capturing');
    end if;
    if new.predecessor is not null then
        select * into earlier from lockstep.batches b where b.id = new.predecessor;
        if earlier.state in ('capturing', 'abandoned') then
            perform lockstep.refuse('batches_predecessor_captured', 'the predecessor is not captured');
        end if;
    end if;
    if new.base <> coalesce(earlier.base + earlier.changes, 0) then
        perform lockstep.refuse('batches_base_follows', 'a batch counts on from its predecessor');
    end if;
    return new;
end
$$;

create function lockstep.batches_move() returns trigger language plpgsql as $$
begin
    if (new.id, new.source, new.predecessor, new.start_decision, new.base, new.token, new.created_at,
        new.start_base, new.start_number, new.start_offset, new.start_gtid_set, new.start_server_uuid,
        new.start_committed_at)
        is distinct from
       (old.id, old.source, old.predecessor, old.start_decision, old.base, old.token, old.created_at,
        old.start_base, old.start_number, old.start_offset, old.start_gtid_set, old.start_server_uuid,
        old.start_committed_at) then
        perform lockstep.refuse('batches_start_stays', 'a batch keeps its start');
    end if;
    if old.state <> 'capturing' and
       (new.end_base, new.end_number, new.end_offset, new.end_gtid_set, new.end_server_uuid,
        new.end_committed_at, new.witness_offset, new.witness_length, new.witness_crc32,
        new.witness_gtid, new.witness_file_created, new.changes, new.transactions, new.log_bytes,
        new.captured_at)
        is distinct from
       (old.end_base, old.end_number, old.end_offset, old.end_gtid_set, old.end_server_uuid,
        old.end_committed_at, old.witness_offset, old.witness_length, old.witness_crc32,
        old.witness_gtid, old.witness_file_created, old.changes, old.transactions, old.log_bytes,
        old.captured_at) then
        perform lockstep.refuse('batches_end_stays', 'a captured batch keeps its end');
    end if;
    if (old.state, new.state) not in (
        ('capturing', 'captured'), ('capturing', 'abandoned'), ('captured', 'abandoned'),
        ('captured', 'merged'), ('merged', 'acknowledged')) then
        perform lockstep.refuse('batches_move_forward', 'no batch moves from ' || old.state || ' to ' || new.state);
    end if;
    case new.state
        when 'captured' then perform lockstep.batches_may_be_captured(new);
        when 'merged' then perform lockstep.batches_may_be_merged(new);
        when 'acknowledged' then perform lockstep.batches_may_be_acknowledged(new);
        else perform lockstep.batches_may_be_abandoned(old);
    end case;
    return new;
end
$$;

create function lockstep.batches_may_be_captured(a_batch lockstep.batches) returns void language plpgsql as $$
begin
    if exists (select from lockstep.segments s where s.batch = a_batch.id
               and (s.first_sequence <= a_batch.base or s.last_sequence > a_batch.base + a_batch.changes)) then
        perform lockstep.refuse('batches_sequences_within', 'a segment lies outside its batch');
    end if;
end
$$;

create function lockstep.batches_may_be_merged(a_batch lockstep.batches) returns void language plpgsql as $$
begin
    if exists (select from lockstep.waiting w where w.batch = a_batch.id) then
        perform lockstep.refuse('batches_merged_whole', 'a table of the batch is not merged');
    end if;
end
$$;

create function lockstep.batches_may_be_acknowledged(a_batch lockstep.batches) returns void language plpgsql as $$
begin
    if exists (select from lockstep.batches b where b.id = a_batch.predecessor and b.state <> 'acknowledged') then
        perform lockstep.refuse('batches_acknowledged_in_order', 'the predecessor is not acknowledged');
    end if;
end
$$;

create function lockstep.batches_may_be_abandoned(a_batch lockstep.batches) returns void language plpgsql as $$
begin
    if exists (select from lockstep.batches b where b.predecessor = a_batch.id and b.state <> 'abandoned') then
        perform lockstep.refuse('batches_abandoned_newest_first', 'a later batch starts at its end');
    end if;
    if exists (select from lockstep.segments s
               join lockstep.writes w using (source, database, name)
               where s.batch = a_batch.id and a_batch.id between w.first_batch and w.last_batch) then
        perform lockstep.refuse('batches_abandoned_unmerged', 'a write to a mirror covers the batch');
    end if;
end
$$;

create trigger batches_begin before insert on lockstep.batches
    for each row execute function lockstep.batches_begin();
create trigger batches_move before update on lockstep.batches
    for each row execute function lockstep.batches_move();
create trigger batches_stay before delete on lockstep.batches
    for each row execute function lockstep.stays('batches_stay');
