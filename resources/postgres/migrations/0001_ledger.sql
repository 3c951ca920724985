-- The ledger: what Lockstep knows of its sources and of its lake.
--
-- A source's log is read in batches. A batch is captured (its changes are durable in the lake, as
-- files of segments), then merged (every mirror shows them), then acknowledged; or it is abandoned,
-- and what it read is read again. Everything else hangs on that chain.
--
-- What code might forget is a rule here. Each rule is a constraint, a unique index or a call of
-- lockstep.refuse, and each has a name of its own. resources/postgres/refusals.py has a sentence for
-- those that a person can break, and tests/ledger/violations.sql breaks every one of them.
--
-- Three kinds of columns recur. A place in the log is `_base`, `_number` and `_offset`: the file
-- binlog.000012 at 4567 is ('binlog', 12, 4567). A batch is the id of a row of `batches`, together
-- with its source. A token is the number of the lease under which a row was written.

-- -- refusing ----------------------------------------------------------------------------------

-- Refuses a statement by the name of the rule that it breaks, as Postgres does for a constraint.
create function lockstep.refuse(rule text, complaint text) returns void language plpgsql as $$
begin
    raise exception using errcode = 'integrity_constraint_violation', constraint = rule, message = complaint;
end
$$;

-- Whether an update changes other columns than these. The digests are left out, because Postgres
-- computes generated columns only after the triggers.
create function lockstep.changes_besides(old anyelement, new anyelement, variadic columns text[])
returns boolean language sql immutable as $$
    select to_jsonb(new) - l.left_out <> to_jsonb(old) - l.left_out
    from (select columns || '{start_gtid_digest,end_gtid_digest}'::text[]) l (left_out)
$$;

-- Rows of a table with this trigger are never changed, and only lockstep.prune_contents,
-- prune_leases and prune_batches delete them. The end of this file lists the tables.
create function lockstep.stays() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and current_setting('lockstep.pruning', true) = 'on' then
        return old;
    end if;
    perform lockstep.refuse(tg_argv[0], 'rows of ' || tg_table_name || ' are never changed or deleted');
    return null;
end
$$;

-- Rows of a table with this trigger are facts that the capture of their batch records: none is added
-- later. A row without a batch is no such fact.
create function lockstep.while_capturing() returns trigger language plpgsql as $$
begin
    if new.batch is not null and not exists (
        select from lockstep.batches b where b.id = new.batch and b.state = 'capturing') then
        perform lockstep.refuse(tg_argv[0],
            'rows of ' || tg_table_name || ' are recorded while their batch is capturing');
    end if;
    return new;
end
$$;

-- -- the ledger, its sources and who may write for them ----------------------------------------

-- The ledger's own name, which the folders and commits of its lake carry. There is one row.
create table lockstep.ledger (
    id uuid not null constraint ledger_pk primary key,
    created_at timestamptz not null default clock_timestamp(),
    alone boolean not null default true constraint ledger_alone unique,
    constraint ledger_alone_true check (alone)
);

insert into lockstep.ledger (id) values (gen_random_uuid());

-- A source: one MySQL or MariaDB server that is read. `lock_key` is its half of the advisory lock
-- that a holder takes; `token` is that of the newest lease and never falls, so that each later write
-- of a holder whose source was taken over is refused. `beat_at`: the holder's last heartbeat.
-- `gtids_off_at`: GTIDs were off at this moment, so no run resumes by a GTID set captured before it.
create table lockstep.sources (
    name text not null constraint sources_pk primary key,
    lock_key integer not null generated always as identity constraint sources_lock_key unique,
    token bigint not null default 0 constraint sources_token_not_negative check (token >= 0),
    first_seen_at timestamptz not null default now(),
    beat_at timestamptz,
    gtids_off_at timestamptz
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

-- A lease: the right of one process to write for a source. A row of another table that has a token
-- was written under that lease. `run_id`: the id of the run, if the process was one; `in_dagster`:
-- Dagster gave it that id, and records what it does. What other runs did, such as those that a timer
-- started, Dagster reads from the ledger. `ended_at`: when the process gave the lease back; null for
-- the lease that is held, and for those of processes that were killed, or hung and were taken over.
create table lockstep.leases (
    source text not null constraint leases_source references lockstep.sources,
    token bigint not null constraint leases_token_positive check (token > 0),
    holder text not null,
    run_id text,
    backend_pid integer not null,
    taken_at timestamptz not null default clock_timestamp(),
    in_dagster boolean not null default false,
    ended_at timestamptz,
    constraint leases_pk primary key (source, token)
);

create function lockstep.leases_end() returns trigger language plpgsql as $$
begin
    if lockstep.changes_besides(old, new, 'ended_at') or old.ended_at is not null then
        perform lockstep.refuse('leases_stay', 'a lease stays as it was taken, and ends once');
    end if;
    if exists (select from lockstep.leases l where l.source = new.source and l.token > new.token) then
        perform lockstep.refuse('leases_end_before_the_next', 'a lease that was taken over is not given back');
    end if;
    return new;
end
$$;

create trigger leases_end before update on lockstep.leases
    for each row execute function lockstep.leases_end();

-- A Spark Connect client whose statements may still be running at the server. The next holder of the
-- source ends them. A run deletes its row after its last merge.
create table lockstep.spark_clients (
    source text not null,
    client uuid not null,
    token bigint not null,
    constraint spark_clients_pk primary key (source, client),
    constraint spark_clients_lease foreign key (source, token) references lockstep.leases (source, token)
);

-- -- decisions ---------------------------------------------------------------------------------

-- A person's choice of the place where the next batch begins, with the reason that they gave.
create table lockstep.overrides (
    id bigint generated always as identity constraint overrides_pk primary key,
    source text not null,
    token bigint not null,
    place text not null constraint overrides_place_named check (place <> ''),
    reason text not null constraint overrides_reasoned check (btrim(reason) <> ''),
    author text not null,
    chosen_at timestamptz not null default clock_timestamp(),
    constraint overrides_of_source unique (source, id),
    constraint overrides_lease foreign key (source, token) references lockstep.leases (source, token)
);

-- A decision, with the rule that led to it and the facts that it was made from. `rule` and `facts` are
-- for people; of `facts`, code reads only where the log ended when a start was decided. Whatever else
-- code reads has a column:
--   of a start: `previous_batch`, the batch after which it goes on; `continuity`, whether the log of
--     the two batches is contiguous, overlaps or has a gap; `gap_tables`, the tables that lack
--     changes because of a gap; `override`, the choice that it carries out;
--   of a refusal or failure: `recovery`, who can do something about it; `hint`, what to type;
--   of a run that found nothing to read: `head_*`, where the log ended;
--   `structures`: the tables, each [database, name], whose structures are still to be compared with
--     the server's. The newest such decision counts.
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
    previous_batch bigint,
    continuity text constraint decisions_continuity_known check (
        continuity in ('contiguous', 'overlap', 'gap')
    ),
    override bigint,
    gap_tables text[] not null default '{}',
    recovery text constraint decisions_recovery_known check (
        recovery in ('configuration', 'retry', 'operator')
    ),
    hint text not null default '',
    head_base text,
    head_number bigint,
    head_offset bigint,
    structures jsonb,
    constraint decisions_of_source unique (source, id),
    constraint decisions_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint decisions_override foreign key (source, override)
        references lockstep.overrides (source, id),
    constraint decisions_continuity_with_previous check ((previous_batch is null) = (continuity is null)),
    constraint decisions_gap_named check (
        (continuity is not distinct from 'gap') = (cardinality(gap_tables) > 0)
    ),
    constraint decisions_recovery_of_failures check (
        (kind in ('refusal', 'failure')) = (recovery is not null)
    ),
    constraint decisions_hint_with_recovery check (hint = '' or recovery is not null),
    constraint decisions_head_of_idle check (
        num_nonnulls(head_base, head_number, head_offset) = 0
        or kind = 'idle' and num_nonnulls(head_base, head_number, head_offset) = 3
    ),
    constraint decisions_structures_of_kind check ((kind = 'structures') = (structures is not null))
);

create index decisions_by_previous on lockstep.decisions (source, previous_batch)
    where previous_batch is not null;
create index decisions_by_token on lockstep.decisions (source, token);
create index decisions_on_structures on lockstep.decisions (source, id) where kind = 'structures';

-- -- batches -----------------------------------------------------------------------------------

-- A batch: whole transactions of the log from its start to its end. It begins exactly where its
-- `continued_batch` ended, or where a start decision says. Once the batch that it continued is deleted,
-- that one's id is its `forgotten_batch`. In each case `previous_batch` is the batch after which it
-- goes on, so the live batches of a source are one chain.
--   `kind`: 'catching-up' reads again, for tables that had stopped, what other tables have already.
--   `sequence_before`: number of the last change before it; its own changes have the numbers that come next.
--   `anchor_*`: length and checksum of the event before its end, so that the next run can
--     prove that it reads the same log.
--   `by_gtid`: the end may be resumed by its GTID set on another server.
--   `server_*`: when the server had been started and how often its log had been reset. Unchanged
--     values prove that a log is still the one that was read.
--   `*_requests`: what was asked of an object store since the batch before, by the lake's own client
--     and by Spark's.
--   `passed_statements`: statements logged instead of rows that change no captured table.
-- GTID sets grow without bound, but index rows have a limit: keys contain the digests of the sets.
create table lockstep.batches (
    id bigint generated always as identity constraint batches_pk primary key,
    source text not null,
    kind text not null default 'ordinary' constraint batches_kind_known check (
        kind in ('ordinary', 'catching-up')
    ),
    state text not null constraint batches_state_known check (
        state in ('capturing', 'captured', 'merged', 'acknowledged', 'abandoned')
    ),
    continued_batch bigint,
    start_decision bigint,
    forgotten_batch bigint,
    previous_batch bigint constraint batches_previous_earlier check (previous_batch < id),
    sequence_before bigint not null
        constraint batches_sequence_before_not_negative check (sequence_before >= 0),
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
    anchor_offset bigint,
    anchor_length bigint,
    anchor_crc32 bigint,
    anchor_gtid text,
    anchor_file_created bigint,
    by_gtid boolean not null default false,
    server_started_at timestamptz,
    server_resets bigint,
    changes bigint not null default 0,
    transactions bigint not null default 0,
    log_bytes bigint not null default 0,
    passed_statements bigint not null default 0
        constraint batches_passed_statements_not_negative check (passed_statements >= 0),
    lockstep_requests bigint,
    spark_requests bigint,
    captured_at timestamptz,
    merged_at timestamptz,
    acknowledged_at timestamptz,
    abandoned_at timestamptz,
    abandoned_because text,
    constraint batches_of_source unique (source, id),
    constraint batches_lease foreign key (source, token) references lockstep.leases (source, token),
    -- A batch has one reason to begin where it begins; if it continues a batch, it begins at the byte at
    -- which that one ended. The chain's two foreign keys are deferred only while batches are deleted.
    constraint batches_one_origin check (
        num_nonnulls(continued_batch, start_decision, forgotten_batch) = 1
    ),
    constraint batches_end unique (
        source, id, end_base, end_number, end_offset, end_gtid_digest, end_server_uuid
    ),
    constraint batches_start_at_end_of_continued foreign key (
        source, continued_batch, start_base, start_number, start_offset, start_gtid_digest,
        start_server_uuid
    ) references lockstep.batches (
        source, id, end_base, end_number, end_offset, end_gtid_digest, end_server_uuid
    ) deferrable initially immediate,
    constraint batches_start_decision foreign key (source, start_decision)
        references lockstep.decisions (source, id),
    constraint batches_previous foreign key (source, previous_batch) references lockstep.batches (source, id)
        deferrable initially immediate,
    constraint batches_previous_is_continued check (
        continued_batch is null or previous_batch is not distinct from continued_batch
    ),
    constraint batches_forgotten_between check (
        forgotten_batch is null
        or coalesce(previous_batch < forgotten_batch and forgotten_batch < id, false)
    ),
    constraint batches_catch_up_decided check (kind <> 'catching-up' or start_decision is not null),
    -- An end is recorded as a whole, together with the capture.
    constraint batches_end_recorded check (
        case state
            when 'capturing' then num_nonnulls(end_base, end_number, end_offset, end_gtid_set,
                end_server_uuid, end_committed_at, anchor_offset, anchor_length, anchor_crc32,
                anchor_gtid, anchor_file_created, captured_at) = 0
            when 'abandoned' then num_nulls(end_base, end_number, end_offset, end_gtid_set,
                end_server_uuid, anchor_offset, anchor_length, anchor_crc32, anchor_gtid,
                anchor_file_created, captured_at) in (0, 11)
            else num_nulls(end_base, end_number, end_offset, end_gtid_set,
                end_server_uuid, anchor_offset, anchor_length, anchor_crc32, anchor_gtid,
                anchor_file_created, captured_at) = 0
        end
    ),
    constraint batches_end_not_before_start check (
        (end_number, end_offset) >= (start_number, start_offset)
    ),
    constraint batches_server_process_whole check ((server_started_at is null) = (server_resets is null)),
    constraint batches_totals_of_captured check (
        changes >= 0 and transactions >= 0 and log_bytes >= 0
        and (captured_at is not null or (changes, transactions, log_bytes) = (0, 0, 0))
    ),
    constraint batches_requests_not_negative check (lockstep_requests >= 0 and spark_requests >= 0),
    constraint batches_requests_of_acknowledged check (
        num_nonnulls(lockstep_requests, spark_requests) = 0
        or state = 'acknowledged' and lockstep_requests is not null
    ),
    constraint batches_times_of_state check (
        (merged_at is not null) = (state in ('merged', 'acknowledged'))
        and (acknowledged_at is not null) = (state = 'acknowledged')
        and (abandoned_at is not null) = (state = 'abandoned')
        and (abandoned_because is not null) = (state = 'abandoned')
    )
);

alter table lockstep.decisions
    add constraint decisions_previous_batch foreign key (source, previous_batch)
    references lockstep.batches (source, id);

-- One batch of a source is captured at a time, no batch has two live successors, and no decision
-- begins two live batches. Every live batch leads back to a live root, so one live root is one chain.
create unique index batches_one_capturing on lockstep.batches (source) where state = 'capturing';
create unique index batches_one_successor on lockstep.batches (previous_batch) where state <> 'abandoned';
create unique index batches_one_per_decision on lockstep.batches (start_decision) where state <> 'abandoned';
create unique index batches_one_chain on lockstep.batches (source)
    where previous_batch is null and state <> 'abandoned';

-- A batch with the run that began it, and how it follows the batch before it.
create view lockstep.begun_batches as
    select b.*, l.run_id, d.continuity
    from lockstep.batches b
    join lockstep.leases l on l.source = b.source and l.token = b.token
    left join lockstep.decisions d on d.id = b.start_decision;
create index batches_unfinished on lockstep.batches (source, id)
    where state in ('capturing', 'captured', 'merged');
-- When Postgres deletes a batch or a lease, it looks for references to it by each of these.
create index batches_by_decision on lockstep.batches (source, start_decision)
    where start_decision is not null;
create index batches_by_previous on lockstep.batches (source, previous_batch)
    where previous_batch is not null;
create index batches_by_continued on lockstep.batches (source, continued_batch)
    where continued_batch is not null;
create index batches_by_token on lockstep.batches (source, token);

-- A batch begins as capturing, goes on after a captured batch, and continues its numbers of changes.
-- Start decisions carry out a person's choice once.
create function lockstep.batches_begin() returns trigger language plpgsql as $$
declare
    decision lockstep.decisions;
    earlier lockstep.batches;
begin
    if new.state <> 'capturing' then
        perform lockstep.refuse('batches_begin_capturing', 'a batch begins as capturing');
    end if;
    if new.forgotten_batch is not null then
        perform lockstep.refuse('batches_begin_without_forgotten', 'a batch begins without a forgotten batch');
    end if;
    new.previous_batch := new.continued_batch;
    if new.start_decision is not null then
        select * into decision from lockstep.decisions d
        where d.source = new.source and d.id = new.start_decision;
        if decision.kind <> 'start' then
            perform lockstep.refuse('batches_start_decided', 'the decision is not one to start');
        end if;
        if exists (select from lockstep.decisions d
                   join lockstep.batches b on b.start_decision = d.id and b.state <> 'abandoned'
                   where d.override = decision.override) then
            perform lockstep.refuse('overrides_once', 'a live batch was begun by this choice');
        end if;
        new.previous_batch := coalesce(new.continued_batch, decision.previous_batch);
    end if;
    if new.previous_batch is not null then
        select * into earlier from lockstep.batches b where b.id = new.previous_batch;
        if earlier.state in ('capturing', 'abandoned') then
            perform lockstep.refuse('batches_previous_captured', 'the batch before is not captured');
        end if;
    end if;
    if new.sequence_before <> coalesce(earlier.sequence_before + earlier.changes, 0) then
        perform lockstep.refuse('batches_sequence_goes_on', 'a batch counts on from the one before');
    end if;
    return new;
end
$$;

create trigger batches_begin before insert on lockstep.batches
    for each row execute function lockstep.batches_begin();

-- The sequences that a captured batch records are numbers of its own changes. Only the rows of a load
-- that it joins belong after a change of an earlier batch, the one that began to follow the load.
create function lockstep.batches_may_be_captured(a_batch lockstep.batches) returns void
language plpgsql as $$
declare
    a_last bigint := a_batch.sequence_before + a_batch.changes;
begin
    if exists (select from lockstep.segments s where s.batch = a_batch.id
               and (s.first_sequence <= a_batch.sequence_before or s.last_sequence > a_last))
    or exists (select from lockstep.table_events e where e.batch = a_batch.id
               and e.sequence not between a_batch.sequence_before and a_last)
    or exists (select from lockstep.snapshots s where s.batch = a_batch.id
               and s.low_sequence not between a_batch.sequence_before and a_last
               and not exists (
                   select from lockstep.loads l where l.joined_batch = a_batch.id
                   and (l.source, l.database, l.name) = (s.source, s.database, s.name)
                   and l.followed_sequence = s.low_sequence)) then
        perform lockstep.refuse('batches_sequences_within', 'a sequence lies outside its batch');
    end if;
end
$$;

create function lockstep.batches_may_be_abandoned(a_batch lockstep.batches) returns void
language plpgsql as $$
begin
    if exists (select from lockstep.batches b
               where b.previous_batch = a_batch.id and b.state <> 'abandoned') then
        perform lockstep.refuse('batches_abandoned_newest_first', 'a later batch follows it');
    end if;
    if exists (select from lockstep.touched s
               join lockstep.writes w using (source, database, name)
               where s.batch = a_batch.id and a_batch.id between w.first_batch and w.last_batch) then
        perform lockstep.refuse('batches_abandoned_unmerged', 'a write to a mirror covers the batch');
    end if;
end
$$;

-- While lockstep.prune_batches deletes batches, the one after them is linked to the newest live batch
-- that stays, and nothing else of it changes.
create function lockstep.batches_may_be_relinked(old lockstep.batches, new lockstep.batches) returns void
language plpgsql as $$
begin
    if lockstep.changes_besides(old, new, 'continued_batch', 'previous_batch', 'forgotten_batch')
        or new.continued_batch is not null
        or new.forgotten_batch is null
        or new.forgotten_batch <> coalesce(old.forgotten_batch, old.continued_batch)
        or exists (select from lockstep.batches b where b.id = old.previous_batch)
        or new.previous_batch is distinct from (
            select max(b.id) from lockstep.batches b
            where b.source = old.source and b.id < old.id and b.state <> 'abandoned') then
        perform lockstep.refuse('batches_relinked',
            'only which batch it follows changes, and only once the batch that it continued was deleted');
    end if;
end
$$;

-- A batch goes from capturing to captured, merged and acknowledged, or is abandoned before it is
-- merged. Its start never changes, and its end only while it is capturing.
create function lockstep.batches_move() returns trigger language plpgsql as $$
begin
    if current_setting('lockstep.pruning', true) = 'on' then
        perform lockstep.batches_may_be_relinked(old, new);
        return new;
    end if;
    if (new.id, new.source, new.kind, new.continued_batch, new.start_decision, new.forgotten_batch,
        new.previous_batch, new.sequence_before, new.token, new.created_at, new.start_base, new.start_number,
        new.start_offset, new.start_gtid_set, new.start_server_uuid, new.start_committed_at)
        is distinct from
       (old.id, old.source, old.kind, old.continued_batch, old.start_decision, old.forgotten_batch,
        old.previous_batch, old.sequence_before, old.token, old.created_at, old.start_base, old.start_number,
        old.start_offset, old.start_gtid_set, old.start_server_uuid, old.start_committed_at) then
        perform lockstep.refuse('batches_start_stays', 'a batch keeps what it is and its start');
    end if;
    if old.state <> 'capturing' and lockstep.changes_besides(old, new, 'state', 'merged_at',
            'acknowledged_at', 'abandoned_at', 'abandoned_because', 'lockstep_requests',
            'spark_requests') then
        perform lockstep.refuse('batches_end_stays', 'a captured batch keeps its end');
    end if;
    if (old.state, new.state) not in (
        ('capturing', 'captured'), ('capturing', 'abandoned'), ('captured', 'abandoned'),
        ('captured', 'merged'), ('merged', 'acknowledged')) then
        perform lockstep.refuse('batches_move_forward', 'no batch moves from ' || old.state || ' to ' || new.state);
    end if;
    case new.state
        when 'captured' then perform lockstep.batches_may_be_captured(new);
        when 'merged' then
            if exists (select from lockstep.waiting w where w.batch = new.id) then
                perform lockstep.refuse('batches_merged_whole', 'a table of the batch is not merged');
            end if;
        when 'acknowledged' then
            if exists (select from lockstep.batches b
                       where b.id = new.previous_batch and b.state <> 'acknowledged') then
                perform lockstep.refuse('batches_acknowledged_in_order', 'the batch before is not acknowledged');
            end if;
        else perform lockstep.batches_may_be_abandoned(old);
    end case;
    return new;
end
$$;

create trigger batches_move before update on lockstep.batches
    for each row execute function lockstep.batches_move();

-- What an abandoned batch did is undone: its prepared transactions are abandoned, those that it
-- ended are open again, orders that it carried out are open again, and loads are no longer joined
-- nor followed by it. Its own prepared transactions come first: it may have ended a transaction and
-- prepared another of the same XID, and of these only one may be open. The states of tables are not
-- undone here but by code, which computes them from the tables' other events.
create function lockstep.batches_abandoned() returns trigger language plpgsql as $$
begin
    update lockstep.prepared set abandoned = true, ended_by = null, committed = null
    where batch = new.id;
    update lockstep.prepared set ended_by = null, committed = null
    where source = new.source and ended_by = new.id;
    update lockstep.table_orders set done_batch = null where done_batch = new.id;
    update lockstep.loads l set joined_batch = null, void_because = (
        select 'another one was ordered since' from lockstep.loads o
        where (o.source, o.database, o.name) = (l.source, l.database, l.name)
          and o.id <> l.id and o.joined_batch is null and o.void_because is null)
    where l.joined_batch = new.id;
    update lockstep.loads set
        followed_batch = null, followed_sequence = null, followed_version = null
    where followed_batch = new.id and void_because is null;
    return null;
end
$$;

create trigger batches_abandoned after update on lockstep.batches
    for each row when (new.state = 'abandoned') execute function lockstep.batches_abandoned();

create function lockstep.batches_go() returns trigger language plpgsql as $$
begin
    if old.id >= lockstep.pruned_through(old.source)
        or old.state not in ('acknowledged', 'abandoned')
        or old.state = 'acknowledged' and old.start_decision is not null then
        perform lockstep.refuse('batches_go_forgotten',
            'a batch is deleted only after its changes, and no live batch that a decision began');
    end if;
    return old;
end
$$;

create trigger batches_go before delete on lockstep.batches
    for each row when (current_setting('lockstep.pruning', true) = 'on')
    execute function lockstep.batches_go();

-- Gaps: changes that no batch has, because a start was chosen after the end of the batch before it.
create view lockstep.gaps as
    select d.source, d.id as decision, b.id as batch, d.decided_at, d.author, d.reason, d.gap_tables,
           e.end_base as from_base, e.end_number as from_number, e.end_offset as from_offset,
           b.start_base as to_base, b.start_number as to_number, b.start_offset as to_offset
    from lockstep.decisions d
    join lockstep.batches b on b.start_decision = d.id and b.state <> 'abandoned'
    join lockstep.batches e on e.id = d.previous_batch
    where d.continuity = 'gap';

-- The patterns that a batch was captured with, if they differ from those of the live batch before it.
create table lockstep.capture_scopes (
    source text not null,
    batch bigint not null constraint capture_scopes_pk primary key,
    include text[] not null,
    exclude text[] not null,
    constraint capture_scopes_batch foreign key (source, batch) references lockstep.batches (source, id)
);

create index capture_scopes_of_source on lockstep.capture_scopes (source, batch);

-- The last transaction of each origin of GTIDs that a batch read, `ordinal` 0 for the last of all. A
-- transaction is found again in another server's log by its commit time or, where the log has none
-- (`committed_at` 0), by a digest of its events.
create table lockstep.set_anchors (
    source text not null,
    batch bigint not null,
    ordinal integer not null constraint set_anchors_ordinal_not_negative check (ordinal >= 0),
    origin text not null,
    gtid text not null,
    committed_at bigint not null constraint set_anchors_time_not_negative check (committed_at >= 0),
    digest text not null,
    constraint set_anchors_pk primary key (batch, ordinal),
    constraint set_anchors_once unique (batch, origin),
    constraint set_anchors_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint set_anchors_time_or_digest check ((committed_at = 0) = (digest <> ''))
);

create index set_anchors_newest on lockstep.set_anchors (source, origin, batch);

-- Files that a batch adds to the tables that a source itself has in the lake.
create table lockstep.source_files (
    source text not null,
    batch bigint not null,
    name text not null constraint source_files_name_known check (name in ('_ddl', '_transactions')),
    ordinal integer not null,
    path text not null,
    images bigint not null,
    size bigint not null,
    sha256 text not null constraint source_files_digest check (sha256 ~ '^[0-9a-f]{64}$'),
    constraint source_files_pk primary key (batch, name, ordinal),
    constraint source_files_once unique (batch, name, path),
    constraint source_files_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint source_files_not_negative check (ordinal >= 0 and images >= 0 and size >= 0)
);

-- A prepared XA transaction. What `batch` read of it waits in its file, perhaps many batches long,
-- for the batch `ended_by` that reads XA COMMIT or XA ROLLBACK. The file is encrypted (AES-256-GCM)
-- with `file_key`, so the lake alone reveals no row of it. If the settings have a privacy key,
-- `file_key` is wrapped with that, so lake and ledger together reveal none either. XIDs are reused, so
-- a row is a prepared transaction, not an XID; of one XID only one is open at a time. MySQL manual,
-- "XA Transaction SQL Statements": gtrid and bqual have up to 64 bytes each.
create table lockstep.prepared (
    id bigint generated always as identity constraint prepared_pk primary key,
    source text not null,
    batch bigint not null,
    format_id bigint not null,
    gtrid bytea not null,
    bqual bytea not null,
    position text not null,
    path text,
    size bigint,
    sha256 text constraint prepared_file_digest check (sha256 ~ '^[0-9a-f]{64}$'),
    file_key bytea constraint prepared_file_key check (octet_length(file_key) in (32, 40)),
    ended_by bigint,
    committed boolean,
    abandoned boolean not null default false,
    constraint prepared_once unique (batch, format_id, gtrid, bqual),
    constraint prepared_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint prepared_ended_by foreign key (source, ended_by) references lockstep.batches (source, id),
    constraint prepared_xid_fits check (octet_length(gtrid) <= 64 and octet_length(bqual) <= 64),
    constraint prepared_file_whole check (num_nonnulls(path, size, sha256, file_key) in (0, 4)),
    constraint prepared_file_size check (size >= 0),
    constraint prepared_end_whole check ((ended_by is null) = (committed is null)),
    constraint prepared_end_not_before check (ended_by >= batch),
    constraint prepared_end_live check (ended_by is null or not abandoned)
);

create unique index prepared_open_once on lockstep.prepared (source, format_id, gtrid, bqual)
    where ended_by is null and not abandoned;
create index prepared_by_end on lockstep.prepared (source, ended_by) where ended_by is not null;

create function lockstep.prepared_begin() returns trigger language plpgsql as $$
begin
    if new.ended_by is not null or new.abandoned then
        perform lockstep.refuse('prepared_begin_open', 'a prepared transaction begins as open');
    end if;
    return new;
end
$$;

create trigger prepared_begin before insert on lockstep.prepared
    for each row execute function lockstep.prepared_begin();

create function lockstep.prepared_move() returns trigger language plpgsql as $$
begin
    if lockstep.changes_besides(old, new, 'ended_by', 'committed', 'abandoned') then
        perform lockstep.refuse('prepared_stay', 'a prepared transaction stays as it was recorded');
    end if;
    if new.abandoned <> old.abandoned and not (new.abandoned and exists (
        select from lockstep.batches b where b.id = new.batch and b.state = 'abandoned')) then
        perform lockstep.refuse('prepared_abandoned_with_batch', 'its batch is not abandoned');
    end if;
    if old.ended_by is not null and (new.ended_by is not null or not exists (
        select from lockstep.batches b where b.id = old.ended_by and b.state = 'abandoned')) then
        perform lockstep.refuse('prepared_ended_once', 'a live batch ended it');
    end if;
    if old.ended_by is null and new.ended_by is not null and not exists (
        select from lockstep.batches b where b.id = new.ended_by and b.state = 'capturing') then
        perform lockstep.refuse('prepared_ended_while_capturing', 'the batch that ends it is not capturing');
    end if;
    return new;
end
$$;

create trigger prepared_move before update on lockstep.prepared
    for each row execute function lockstep.prepared_move();

-- -- structures --------------------------------------------------------------------------------

-- Texts that come from a source may contain what the types text and jsonb refuse (NUL, lone
-- surrogates). A column of type json keeps them escaped.

-- A statement of the log that says something about structures, with its place, the settings that it
-- ran under (`context`), and what became of it. Each of its `effects` has a table, null for none, and
-- words for people.
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
        outcome in ('followed', 'partly followed', 'not understood')
    ),
    effects json not null,
    constraint schema_statements_of_source unique (source, id),
    constraint schema_statements_batch foreign key (source, batch) references lockstep.batches (source, id)
);

create index schema_statements_by_batch on lockstep.schema_statements (source, batch);

-- A database from a place of the log on: its defaults, and its triggers and views (`code`), through
-- which statements reach other tables. No charset means that it was dropped, no code that it is
-- not known.
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
    code json,
    statement bigint,
    constraint database_versions_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint database_versions_statement foreign key (source, statement)
        references lockstep.schema_statements (source, id),
    constraint database_versions_whole check ((charset is null) = (collation_name is null)),
    constraint database_versions_code check (code is null or charset is not null)
);

create index database_versions_at on lockstep.database_versions (
    source, name, batch, since_number, since_offset, id
);
create index database_versions_by_batch on lockstep.database_versions (source, batch);

-- A table's structure from a place of the log on, for every table of the server. Versions of a table
-- are numbered without a gap. `generation` is the number of the changelog that gets the rows: a new
-- one begins where a structure or a setting does not fit the columns of the last. `columns_from`
-- names, for each column, the column of the previous version whose values it continues; null if the
-- table did not keep its rows. `shown_as`: how the lake shows the table; null if it shows the table as
-- it is. `schema` contains no value of a hidden column, such as a default.
create table lockstep.table_versions (
    source text not null constraint table_versions_source references lockstep.sources,
    database text not null,
    name text not null,
    version integer not null constraint table_versions_number_positive check (version > 0),
    previous integer generated always as (nullif(version - 1, 0)) stored,
    generation integer not null constraint table_versions_generation_positive check (generation > 0),
    batch bigint not null,
    since_base text not null,
    since_number bigint not null,
    since_offset bigint not null,
    knowledge text not null constraint table_versions_knowledge_known check (
        knowledge in ('known', 'dropped', 'unknown')
    ),
    origin text not null constraint table_versions_origin_known check (
        origin in ('baseline', 'statement', 'table map', 'carried', 'person')
    ),
    schema json,
    fingerprint text,
    columns_from text[],
    statement bigint,
    reason text,
    shown_as json,
    constraint table_versions_pk primary key (source, database, name, version),
    constraint table_versions_no_gap foreign key (source, database, name, previous)
        references lockstep.table_versions (source, database, name, version),
    constraint table_versions_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint table_versions_statement foreign key (source, statement)
        references lockstep.schema_statements (source, id),
    constraint table_versions_schema_of_known check (
        (knowledge = 'known') = (schema is not null)
        and (schema is null) = (fingerprint is null)
    ),
    constraint table_versions_columns_of_known check (knowledge = 'known' or columns_from is null),
    constraint table_versions_shape_of_known check (knowledge = 'known' or shown_as is null),
    constraint table_versions_unknown_explained check ((knowledge = 'unknown') = (reason is not null))
);

create index table_versions_at on lockstep.table_versions (
    source, database, name, batch, since_number, since_offset, version
);
create index table_versions_shaped on lockstep.table_versions (source, database, name)
    where shown_as is not null;
create index table_versions_by_batch on lockstep.table_versions (source, batch);
-- Every table has exactly one version 1: this is the list of all tables.
create index table_versions_first on lockstep.table_versions (source, database, name) where version = 1;

-- -- tables ------------------------------------------------------------------------------------

-- The events of a captured table's life. `details` has the event's values, `condition` is what
-- it led to. An event with a batch was recorded by the capture of that batch; it no longer counts once
-- the batch is abandoned.
create table lockstep.table_life (
    id bigint generated always as identity constraint table_life_pk primary key,
    source text not null,
    database text not null,
    name text not null,
    event text not null constraint table_life_event_known check (event in (
        'followed', 'loaded', 'dropped', 'stopped', 'reloaded', 'rejoined', 'mirror written',
        'mirror handed over', 'mirror replaced', 'mirror removed', 'lake restarted',
        'batch abandoned'
    )),
    condition text not null constraint table_life_condition_known check (
        condition in ('following', 'stopped', 'dropped')
    ),
    batch bigint,
    token bigint not null,
    details jsonb not null,
    recorded_at timestamptz not null default clock_timestamp(),
    constraint table_life_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint table_life_lease foreign key (source, token) references lockstep.leases (source, token)
);

create index table_life_of_table on lockstep.table_life (source, database, name, id);
create index table_life_of_batch on lockstep.table_life (batch) where batch is not null;
create index table_life_by_stop on lockstep.table_life (
    source, ((details ->> 'stopped_batch')::bigint)
);
create index table_life_by_token on lockstep.table_life (source, token);

-- A captured table's state, which is what its events led to (`event` is the newest of them).
--   `generation` rises when changelog and mirror begin again, `changelog_generation` when a structure
--     or setting does not fit the changelog, `mirror_generation` when the mirror is replaced;
--     `mirror` and `changelog` are the present folders.
--   `mirror_schema_version`: the structure that the mirror shows.
--   `adopted_version`: the Delta version at which a ledger made from the lake continued the mirror.
--   `stopped_by` a run (the next one starts the table by itself), the system (Lockstep: it waits for
--     a person) or a person; `reason`, `hint`, `position`: why, what to do, where in the log.
--   `need`: what the table lacks and cannot get by reading on in the log. A followed table with a need
--     is not merged: its rows are being read from the source. Only a person's order ends 'consent'.
--   `stopped_batch` and the place: how far a table that is not followed any more was captured.
--   `missing_since`: the oldest batch that its mirror lacks although the others have gone on. It is the
--     only column that no event determines: it is computed from batches and writes.
create table lockstep.table_states (
    source text not null constraint table_states_source references lockstep.sources,
    database text not null,
    name text not null,
    condition text not null constraint table_states_condition_known check (
        condition in ('following', 'stopped', 'dropped')
    ),
    generation integer not null constraint table_states_generation_positive check (generation > 0),
    mirror text not null,
    changelog text not null,
    reason text,
    hint text,
    position text,
    stopped_by text constraint table_states_stopped_by_known check (
        stopped_by in ('run', 'system', 'person')
    ),
    need text constraint table_states_need_known check (
        need in ('rows', 'structure', 'columns', 'mirror', 'consent')
    ),
    mirror_schema_version integer,
    mirror_generation integer not null default 1
        constraint table_states_mirror_generation_positive check (mirror_generation > 0),
    changelog_generation integer not null default 1
        constraint table_states_changelog_positive check (changelog_generation > 0),
    adopted_version bigint constraint table_states_adopted_version_not_negative check (adopted_version >= 0),
    stopped_batch bigint,
    stopped_base text,
    stopped_number bigint,
    stopped_offset bigint,
    missing_since bigint,
    event bigint constraint table_states_event references lockstep.table_life,
    constraint table_states_pk primary key (source, database, name),
    constraint table_states_mirror_schema_version foreign key (source, database, name, mirror_schema_version)
        references lockstep.table_versions,
    constraint table_states_stopped_batch foreign key (source, stopped_batch)
        references lockstep.batches (source, id),
    constraint table_states_missing_since foreign key (source, missing_since)
        references lockstep.batches (source, id),
    constraint table_states_stop_explained check (
        num_nonnulls(stopped_by, reason, hint, position) = case condition when 'stopped' then 4 else 0 end
    ),
    constraint table_states_need_of_condition check (
        case condition when 'following' then need = 'rows' when 'dropped' then need is null else true end
    ),
    constraint table_states_consent_by_person check (need <> 'consent' or stopped_by <> 'run'),
    constraint table_states_place_of_condition check (
        num_nonnulls(stopped_batch, stopped_base, stopped_number, stopped_offset) = case
            when condition = 'following' then 0
            when condition = 'stopped' and stopped_batch is null then 0
            else 4
        end
    )
);

create index table_states_by_missing_since on lockstep.table_states (source, missing_since)
    where missing_since is not null;
create index table_states_by_stopped on lockstep.table_states (source, stopped_batch)
    where stopped_batch is not null;

create function lockstep.table_states_move() returns trigger language plpgsql as $$
begin
    if new.event is null or tg_op = 'UPDATE' and new.event = old.event
        and lockstep.changes_besides(old, new, 'missing_since') then
        perform lockstep.refuse('table_states_change_with_event', 'a state changes with an event');
    end if;
    return null;
end
$$;

create trigger table_states_move after insert or update on lockstep.table_states
    for each row execute function lockstep.table_states_move();

-- A person's order about a table; the newest one of a table counts. `done_batch` is the batch whose
-- capture carried it out; if that batch is abandoned, the order is open again. A pause takes effect at
-- once. `schema` and `renames` (pairs of an old and a new column's name) were given with a resume.
-- `supplier`: whether the rows of a reload come from the changelog or from the source.
create table lockstep.table_orders (
    id bigint generated always as identity constraint table_orders_pk primary key,
    source text not null,
    token bigint not null,
    database text not null,
    name text not null,
    kind text not null constraint table_orders_kind_known check (
        kind in ('pause', 'resume', 'reload')
    ),
    author text not null constraint table_orders_authored check (btrim(author) <> ''),
    reason text not null,
    ordered_at timestamptz not null default clock_timestamp(),
    schema json,
    renames json,
    supplier text constraint table_orders_supplier_known check (supplier in ('changelog', 'source')),
    done_batch bigint,
    constraint table_orders_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint table_orders_table foreign key (source, database, name) references lockstep.table_states,
    constraint table_orders_done_batch foreign key (source, done_batch)
        references lockstep.batches (source, id),
    constraint table_orders_pause_at_once check (kind <> 'pause' or done_batch is null),
    constraint table_orders_schema_resumed check (schema is null or kind = 'resume'),
    constraint table_orders_renames_structured check (
        renames is null or schema is not null and json_typeof(renames) = 'array'
    ),
    constraint table_orders_supplier_reloads check (supplier is null or kind = 'reload')
);

create index table_orders_newest on lockstep.table_orders (source, database, name, id);
create index table_orders_done on lockstep.table_orders (done_batch) where done_batch is not null;

-- An order begins as open, and fits the state that the table is in.
create function lockstep.table_orders_begin() returns trigger language plpgsql as $$
declare
    table_condition text;
begin
    select t.condition into table_condition from lockstep.table_states t
    where (t.source, t.database, t.name) = (new.source, new.database, new.name);
    if new.done_batch is not null then
        perform lockstep.refuse('table_orders_begin_open', 'an order begins as open');
    end if;
    if new.kind = 'resume' and table_condition <> 'stopped' then
        perform lockstep.refuse('table_orders_resume_stopped', 'the table has not stopped');
    end if;
    if new.kind = 'reload' and table_condition = 'dropped' then
        perform lockstep.refuse('table_orders_reload_there', 'the table was dropped');
    end if;
    return new;
end
$$;

create trigger table_orders_begin before insert on lockstep.table_orders
    for each row execute function lockstep.table_orders_begin();

create function lockstep.table_orders_move() returns trigger language plpgsql as $$
begin
    if (new.id, new.source, new.token, new.database, new.name, new.kind, new.author, new.reason,
        new.ordered_at, new.schema::text, new.renames::text, new.supplier)
        is distinct from
       (old.id, old.source, old.token, old.database, old.name, old.kind, old.author, old.reason,
        old.ordered_at, old.schema::text, old.renames::text, old.supplier) then
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

create trigger table_orders_move before update on lockstep.table_orders
    for each row execute function lockstep.table_orders_move();

-- Orders, each with the condition of its table and the place where that stopped.
create view lockstep.placed_orders as
    select o.*, t.condition, t.stopped_batch, t.stopped_base, t.stopped_number, t.stopped_offset
    from lockstep.table_orders o
    join lockstep.table_states t using (source, database, name);

-- What happened to a table's rows between its changes; `table_life` has what happened to its state.
-- `sequence` is the number of the change before the event. A table's events in a batch ascend. An event
-- for which rows are read or written again has a `reason`. `origin_*` of 'copied': the table whose rows
-- a RENAME gave to this one; of 'rebuilt': the table itself if the new mirror begins with an earlier
-- version of the mirror.
create table lockstep.table_events (
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    ordinal integer not null constraint table_events_ordinal_not_negative check (ordinal >= 0),
    kind text not null constraint table_events_kind_known check (
        kind in ('created', 'changed', 'truncated', 'dropped', 'copied', 'reread', 'refreshed', 'rebuilt')
    ),
    sequence bigint not null,
    version integer not null,
    place_base text not null,
    place_number bigint not null,
    place_offset bigint not null,
    reason text,
    origin_database text,
    origin_name text,
    constraint table_events_pk primary key (batch, database, name, ordinal),
    constraint table_events_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint table_events_table foreign key (source, database, name) references lockstep.table_states,
    constraint table_events_version foreign key (source, database, name, version)
        references lockstep.table_versions,
    constraint table_events_reread_explained check (
        kind not in ('copied', 'reread', 'refreshed', 'rebuilt') or reason is not null
    ),
    constraint table_events_origin_of_kind check (
        case kind
            when 'copied' then num_nonnulls(origin_database, origin_name) = 2
            when 'rebuilt' then num_nonnulls(origin_database, origin_name) = 0
                or (origin_database, origin_name) is not distinct from (database, name)
            else num_nonnulls(origin_database, origin_name) = 0
        end
    )
);

create function lockstep.table_events_order() returns trigger language plpgsql as $$
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

create trigger table_events_order before insert on lockstep.table_events
    for each row execute function lockstep.table_events_order();

-- Whether the lake has all of a table, from a batch on; the newest row of a live batch counts.
-- `begins_*`: the lake has only the changes from this place of the log on, because the table's rows
-- may be older; null if it has all. `empty_*`: the table was seen to be empty at this place, so a
-- capture that reads up to it has all of the table.
create table lockstep.extents (
    id bigint generated always as identity constraint extents_pk primary key,
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    begins_base text,
    begins_number bigint,
    begins_offset bigint,
    empty_base text,
    empty_number bigint,
    empty_offset bigint,
    constraint extents_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint extents_begins_whole check (
        num_nonnulls(begins_base, begins_number, begins_offset) in (0, 3)
    ),
    constraint extents_empty_whole check (
        num_nonnulls(empty_base, empty_number, empty_offset) in (0, 3)
    ),
    constraint extents_empty_of_partial check (empty_base is null or begins_base is not null)
);

create index extents_newest on lockstep.extents (source, database, name, batch, id);
create index extents_by_batch on lockstep.extents (source, batch);

-- The results of comparing a table with its source, in one row for comparisons of all rows and one for
-- samples. A row has the newest result, and what the newest comparison without a difference proved, at
-- which place of the log.
create table lockstep.table_proofs (
    source text not null constraint table_proofs_source references lockstep.sources,
    database text not null,
    name text not null,
    whole boolean not null,
    compared_at timestamptz not null default clock_timestamp(),
    differing bigint not null constraint table_proofs_differing_not_negative check (differing >= 0),
    proven_at timestamptz,
    proof text constraint table_proofs_known check (proof in ('exact', 'prefix', 'rows', 'sample')),
    rows bigint constraint table_proofs_rows_not_negative check (rows >= 0),
    at_base text,
    at_number bigint,
    at_offset bigint,
    gtid_set text,
    constraint table_proofs_pk primary key (source, database, name, whole),
    constraint table_proofs_proven_whole check (
        num_nonnulls(proven_at, proof, rows, at_base, at_number, at_offset, gtid_set) in (0, 7)
    ),
    constraint table_proofs_differing_or_proven check (
        differing > 0 or (proven_at is not null and proven_at = compared_at)
    )
);

-- -- segments ----------------------------------------------------------------------------------

-- What a batch captured of one table in one structure: its files in the changelog, and the numbers of
-- the changes in them.
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
    constraint segments_not_negative check (inserted >= 0 and updated >= 0 and deleted >= 0),
    constraint segments_sequences_ascend check (first_sequence <= last_sequence)
);

create index segments_of_table on lockstep.segments (source, database, name, batch);

-- The structure of a segment is known.
create function lockstep.segments_begin() returns trigger language plpgsql as $$
begin
    if exists (select from lockstep.table_versions v
               where (v.source, v.database, v.name, v.version)
                   = (new.source, new.database, new.name, new.schema_version)
               and v.knowledge <> 'known') then
        perform lockstep.refuse('segments_of_known_versions', 'the version has no columns');
    end if;
    return new;
end
$$;

create trigger segments_begin before insert on lockstep.segments
    for each row execute function lockstep.segments_begin();

create table lockstep.segment_files (
    segment bigint not null constraint segment_files_segment references lockstep.segments,
    ordinal integer not null,
    path text not null,
    images bigint not null,
    size bigint not null,
    sha256 text not null constraint segment_files_digest check (sha256 ~ '^[0-9a-f]{64}$'),
    constraint segment_files_pk primary key (segment, ordinal),
    constraint segment_files_once unique (segment, path),
    constraint segment_files_not_negative check (ordinal >= 0 and images >= 0 and size >= 0)
);

-- Tables with something to merge in a batch. A table may be listed several times.
create view lockstep.touched as
    select source, batch, database, name from lockstep.segments
    union all
    select source, batch, database, name from lockstep.table_events;

-- Rows of a table that were read from the source and are part of a batch, as they were after the change
-- `low_sequence`. `columns` names those that were read beside the key; null means all.
create table lockstep.snapshots (
    id bigint generated always as identity constraint snapshots_pk primary key,
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    version integer not null,
    low_sequence bigint not null,
    columns text[],
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
    constraint snapshot_files_not_negative check (ordinal >= 0 and images >= 0 and size >= 0)
);

-- A revision: new files of past segments, which a replay captured again. They count once the revision
-- is settled. At most one revision of a source is open.
create table lockstep.revisions (
    id bigint generated always as identity constraint revisions_pk primary key,
    source text not null,
    token bigint not null,
    state text not null default 'open' constraint revisions_state_known check (
        state in ('open', 'settled', 'given up')
    ),
    begun_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    constraint revisions_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint revisions_ended_unless_open check ((ended_at is null) = (state = 'open'))
);

create unique index revisions_one_open on lockstep.revisions (source) where state = 'open';

create function lockstep.revisions_move() returns trigger language plpgsql as $$
begin
    if lockstep.changes_besides(old, new, 'state', 'ended_at') or old.state <> 'open' then
        perform lockstep.refuse('revisions_end_once', 'a revision is settled or given up, once');
    end if;
    return new;
end
$$;

create trigger revisions_move before update on lockstep.revisions
    for each row execute function lockstep.revisions_move();

create table lockstep.revised_files (
    revision bigint not null constraint revised_files_revision references lockstep.revisions,
    segment bigint not null constraint revised_files_segment references lockstep.segments,
    ordinal integer not null,
    path text not null,
    images bigint not null,
    size bigint not null,
    sha256 text not null constraint revised_files_digest check (sha256 ~ '^[0-9a-f]{64}$'),
    constraint revised_files_pk primary key (revision, segment, ordinal),
    constraint revised_files_once unique (revision, segment, path),
    constraint revised_files_not_negative check (ordinal >= 0 and images >= 0 and size >= 0)
);

create index revised_files_of_segment on lockstep.revised_files (segment);

create function lockstep.revised_files_begin() returns trigger language plpgsql as $$
begin
    if not exists (
        select from lockstep.revisions r
        join lockstep.segments s on s.id = new.segment and s.source = r.source
        join lockstep.batches b on b.id = s.batch and b.state = 'acknowledged'
        where r.id = new.revision and r.state = 'open') then
        perform lockstep.refuse('revised_files_of_acknowledged',
            'an open revision has files of acknowledged batches of its source');
    end if;
    return new;
end
$$;

create trigger revised_files_begin before insert on lockstep.revised_files
    for each row execute function lockstep.revised_files_begin();

-- A segment's files today: those of its newest settled revision, else those it was captured with.
create view lockstep.current_files as
    with newest as (
        select f.segment, max(f.revision) as revision
        from lockstep.revised_files f
        join lockstep.revisions r on r.id = f.revision and r.state = 'settled'
        group by f.segment
    )
    select f.segment, f.ordinal, f.path, f.images, f.size, f.sha256
    from lockstep.segment_files f
    where not exists (select from newest n where n.segment = f.segment)
    union all
    select f.segment, f.ordinal, f.path, f.images, f.size, f.sha256
    from lockstep.revised_files f
    join newest n on n.segment = f.segment and n.revision = f.revision;

-- -- loads -------------------------------------------------------------------------------------

-- A load: a table that is older than the log is read from the source, chunk by chunk, over as many
-- runs as it takes. `low_*` is the place from which its changes count; from `followed_batch` on they
-- are captured, in the structure `followed_version`; `joined_batch` is the capture that put rows
-- and changes together. One load of a table is open at a time; one that came to nothing is void.
-- `with_past`: before anything is read, the changes that the log still has of the table are captured.
create table lockstep.loads (
    id bigint generated always as identity constraint loads_pk primary key,
    source text not null constraint loads_source references lockstep.sources,
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
    estimated_rows bigint constraint loads_estimate_not_negative check (estimated_rows >= 0),
    shape text,
    with_past boolean not null default false,
    followed_batch bigint,
    followed_sequence bigint,
    followed_version integer,
    joined_batch bigint,
    void_because text constraint loads_void_explained check (btrim(void_because) <> ''),
    constraint loads_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint loads_authored check (btrim(author) <> '' and btrim(reason) <> ''),
    constraint loads_read_whole check (
        num_nonnulls(schema, server_uuid, low_base, low_number, low_offset) in (0, 5)
    ),
    constraint loads_followed check (
        num_nonnulls(followed_batch, followed_sequence, followed_version) in (0, 3)
    ),
    constraint loads_followed_while_read check (followed_batch is null or schema is not null),
    constraint loads_followed_batch foreign key (source, followed_batch)
        references lockstep.batches (source, id),
    constraint loads_followed_version foreign key (source, database, name, followed_version)
        references lockstep.table_versions (source, database, name, version),
    constraint loads_joined_batch foreign key (source, joined_batch)
        references lockstep.batches (source, id),
    constraint loads_joined_not_before_followed check (joined_batch >= followed_batch),
    constraint loads_joined_followed check (joined_batch is null or followed_batch is not null),
    constraint loads_end_once check (joined_batch is null or void_because is null)
);

create unique index loads_one_open on lockstep.loads (source, database, name)
    where joined_batch is null and void_because is null;
create index loads_followed on lockstep.loads (followed_batch) where followed_batch is not null;
create index loads_joined on lockstep.loads (joined_batch) where joined_batch is not null;

-- What a load was begun with stays, and it is joined once all of its chunks are read.
create function lockstep.loads_move() returns trigger language plpgsql as $$
begin
    if current_setting('lockstep.clearing', true) = 'on'
       and num_nonnulls(old.joined_batch, old.void_because) = 1 then
        return new;
    end if;
    if old.void_because is not null then
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

-- A chunk: the rows whose keys lie after `after`, up to `through` (null: from the first, to the
-- last). Chunks are numbered without a gap. One that was read (at a place between `low_*` and
-- `high_*` of the log) is never read again, whatever happens to the run.
create table lockstep.load_chunks (
    load bigint not null constraint load_chunks_load references lockstep.loads,
    number integer not null constraint load_chunks_not_negative check (number >= 0),
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
    planned_at timestamptz not null default clock_timestamp(),
    read_at timestamptz,
    constraint load_chunks_pk primary key (load, number),
    constraint load_chunks_first_from_start check ((number = 0) = (after is null)),
    constraint load_chunks_read check (
        num_nonnulls(low_base, low_number, low_offset, high_base, high_number, high_offset, rows,
                     seconds, read_at) in (0, 9)
    ),
    constraint load_chunks_rows_not_negative check (rows >= 0 and seconds >= 0)
);

create function lockstep.load_chunks_begin() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' and current_setting('lockstep.clearing', true) = 'on' then
        return new;
    end if;
    if not exists (select from lockstep.loads l where l.id = new.load and l.schema is not null
                   and l.joined_batch is null and l.void_because is null) then
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

create table lockstep.load_files (
    load bigint not null,
    number integer not null,
    ordinal integer not null,
    path text not null constraint load_files_path check (path <> ''),
    images bigint not null,
    size bigint not null,
    sha256 text not null,
    constraint load_files_pk primary key (load, number, ordinal),
    constraint load_files_chunk foreign key (load, number) references lockstep.load_chunks (load, number),
    constraint load_files_positive check (images > 0 and size > 0)
);

-- -- writes ------------------------------------------------------------------------------------

-- A write of a mirror: an intent before anything is written, settled once its Delta version is in
-- the lake, or given up if it was refused and nothing of it is there. An intent that a dead run left
-- is found in the lake by its Delta transaction (`app_id`, `txn_version`), so no batch is merged
-- twice; `settled_token` is the lease of the run that found it. `mirror` and `table_id` say where it
-- went and which Delta table that was: another one in the same folder begins at version 0 again.
-- `copies`: the settled write, of this table or of another one, whose version this one begins with; its
-- row may be deleted once this one is settled. `may_have_kept_rows`: after this write the mirror may
-- have unmarked rows that the source no longer has; a later try with other settings may set it.
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
    copies bigint,
    may_have_kept_rows boolean not null default false,
    intended_at timestamptz not null default clock_timestamp(),
    delta_version bigint constraint writes_delta_version_not_negative check (delta_version >= 0),
    settled_at timestamptz,
    settled_token bigint,
    given_up_at timestamptz,
    reason text,
    mirror text,
    table_id text,
    constraint writes_transaction_once unique (app_id, txn_version),
    constraint writes_delta_version_once unique (app_id, delta_version),
    constraint writes_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint writes_settled_lease foreign key (source, settled_token) references lockstep.leases (source, token),
    constraint writes_table foreign key (source, database, name) references lockstep.table_states,
    constraint writes_first_batch foreign key (source, first_batch) references lockstep.batches (source, id),
    constraint writes_last_batch foreign key (source, last_batch) references lockstep.batches (source, id),
    constraint writes_batches_ascend check (first_batch <= last_batch),
    constraint writes_settled_whole check (num_nonnulls(delta_version, settled_at, settled_token) in (0, 3)),
    constraint writes_given_up_or_settled check (settled_at is null or given_up_at is null),
    constraint writes_reason_settled check (reason is null or settled_at is not null),
    constraint writes_mirror_settled check (mirror is null or settled_at is not null),
    constraint writes_table_id_of_mirror check (table_id is null or mirror is not null)
);

create unique index writes_one_open on lockstep.writes (source, database, name)
    where settled_at is null and given_up_at is null;
create index writes_of_table on lockstep.writes (source, database, name, last_batch)
    where settled_at is not null;
create index writes_by_first on lockstep.writes (source, first_batch);
create index writes_by_last on lockstep.writes (source, last_batch);
create index writes_by_token on lockstep.writes (source, token);
create index writes_by_settled_token on lockstep.writes (source, settled_token);

-- A write merges captured batches, or merged ones that its table's mirror lacks, of a table that is
-- neither stopped nor still being read, and no batch twice. A replay writes the changes of
-- acknowledged batches again, any number of times.
create function lockstep.writes_begin() returns trigger language plpgsql as $$
declare
    the_table lockstep.table_states;
begin
    select * into the_table from lockstep.table_states t
    where (t.source, t.database, t.name) = (new.source, new.database, new.name);
    if new.settled_at is not null then
        perform lockstep.refuse('writes_intent_first', 'a write is an intent before it is settled');
    end if;
    if new.step <> 'replay' and exists (
               select from lockstep.batches b where b.source = new.source
               and b.id in (new.first_batch, new.last_batch) and b.state <> 'captured'
               and (b.state not in ('merged', 'acknowledged')
                    or b.id < the_table.missing_since or the_table.missing_since is null)) then
        perform lockstep.refuse('writes_of_captured_batches', 'only captured batches are merged');
    end if;
    if new.step = 'replay' and exists (
               select from lockstep.batches b where b.source = new.source
               and b.id in (new.first_batch, new.last_batch) and b.state <> 'acknowledged') then
        perform lockstep.refuse('writes_replay_acknowledged', 'only acknowledged batches are replayed');
    end if;
    if new.copies is not null and not exists (
               select from lockstep.writes w
               where w.source = new.source and w.id = new.copies and w.settled_at is not null
               and w.last_batch < new.last_batch) then
        perform lockstep.refuse('writes_copy_settled', 'only a settled write has rows to copy');
    end if;
    if the_table.condition = 'stopped' or the_table.need is not null then
        perform lockstep.refuse('writes_of_merged_tables', 'the table is stopped, or its rows are being read');
    end if;
    if new.step <> 'replay' and exists (
               select from lockstep.writes w
               where (w.source, w.database, w.name, w.app_id, w.step)
                   = (new.source, new.database, new.name, new.app_id, new.step)
               and w.settled_at is not null
               and w.first_batch <= new.last_batch and new.first_batch <= w.last_batch) then
        perform lockstep.refuse('writes_never_overlap', 'a settled write of this table covers these batches');
    end if;
    return new;
end
$$;

create trigger writes_begin before insert on lockstep.writes
    for each row execute function lockstep.writes_begin();

create function lockstep.writes_move() returns trigger language plpgsql as $$
begin
    if lockstep.changes_besides(old, new, 'delta_version', 'settled_at', 'settled_token',
            'given_up_at', 'reason', 'mirror', 'table_id', 'may_have_kept_rows')
        or new.may_have_kept_rows < old.may_have_kept_rows then
        perform lockstep.refuse('writes_intent_stays', 'an intent is never regrouped');
    end if;
    if old.settled_at is not null then
        perform lockstep.refuse('writes_settled_once', 'a settled write stays as it is');
    end if;
    if old.given_up_at is not null then
        perform lockstep.refuse('writes_given_up_once', 'a write that was given up stays so');
    end if;
    if exists (select from lockstep.writes w where w.app_id = new.app_id
               and w.delta_version >= new.delta_version) then
        perform lockstep.refuse('writes_delta_version_ascends', 'a later write has a later version');
    end if;
    return new;
end
$$;

create trigger writes_move before update on lockstep.writes
    for each row execute function lockstep.writes_move();

-- Whether a settled merge of the table covers the batch.
create function lockstep.covered(a_source text, a_database text, a_name text, a_batch bigint) returns boolean
language sql stable as $$
    select exists (
        select from lockstep.writes w
        where (w.source, w.database, w.name) = (a_source, a_database, a_name)
          and w.step = 'merge' and w.settled_at is not null
          and a_batch between w.first_batch and w.last_batch
    )
$$;

-- The oldest live batch that touched the table and that no settled merge covers: of those from a_from
-- on, or, if that is null, from the oldest unfinished batch on.
create function lockstep.first_unmerged(a_source text, a_database text, a_name text, a_from bigint) returns bigint
language sql stable as $$
    select min(t.batch) from lockstep.touched t
    join lockstep.batches b on b.id = t.batch and b.state <> 'abandoned'
    where (t.source, t.database, t.name) = (a_source, a_database, a_name)
      and t.batch >= coalesce(a_from, (
          select min(u.id) from lockstep.batches u
          where u.source = a_source and u.state in ('capturing', 'captured', 'merged')))
      and not lockstep.covered(a_source, a_database, a_name, t.batch)
$$;

-- Tables that a captured batch waits for: it counts as merged once their merges are settled.
create view lockstep.waiting as
    select distinct s.source, s.batch, s.database, s.name
    from lockstep.touched s
    join lockstep.batches b on b.id = s.batch and b.state = 'captured'
    join lockstep.table_states t
        on (t.source, t.database, t.name) = (s.source, s.database, s.name)
    where t.condition <> 'stopped' and t.need is null
      and not lockstep.covered(s.source, s.database, s.name, s.batch);

-- A Delta version that upkeep made: it shows the rows of the version `shows` in other files. A reader of
-- the source as of a batch gets the newest version with its rows, whose files stay longest.
create table lockstep.upkept (
    source text not null,
    mirror text not null,
    delta_version bigint not null,
    shows bigint not null,
    token bigint not null,
    noted_at timestamptz not null default clock_timestamp(),
    constraint upkept_pk primary key (source, mirror, delta_version),
    constraint upkept_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint upkept_shows_earlier check (shows >= 0 and shows < delta_version)
);

create index upkept_of_version on lockstep.upkept (source, mirror, shows, delta_version);
create index upkept_by_token on lockstep.upkept (source, token);

create function lockstep.upkept_begin() returns trigger language plpgsql as $$
begin
    if not exists (
        select from lockstep.writes w
        join lockstep.table_states t using (source, database, name)
        where w.source = new.source and coalesce(w.mirror, t.mirror) = new.mirror
          and w.delta_version = new.shows) then
        perform lockstep.refuse('upkept_of_a_write', 'no settled write made the version that it shows');
    end if;
    if exists (
        select from lockstep.writes w
        join lockstep.table_states t using (source, database, name)
        where w.source = new.source and coalesce(w.mirror, t.mirror) = new.mirror
          and w.delta_version > new.shows and w.delta_version <= new.delta_version) then
        perform lockstep.refuse('upkept_unchanged', 'the mirror was written to between the two');
    end if;
    return new;
end
$$;

create trigger upkept_begin before insert on lockstep.upkept
    for each row execute function lockstep.upkept_begin();

-- The newest Delta version that shows the rows of this one.
create function lockstep.newest_showing(of_source text, of_mirror text, version bigint) returns bigint
language sql stable as $$
    select coalesce((
        select max(u.delta_version) from lockstep.upkept u
        where (u.source, u.mirror, u.shows) = (of_source, of_mirror, version)
    ), version)
$$;

-- The mirrors' versions that settled writes made, each in the newest files.
create view lockstep.made_versions as
    select w.source, w.id as write, w.app_id, w.database, w.name, w.mirror, w.table_id, w.last_batch,
        w.may_have_kept_rows,
        lockstep.newest_showing(w.source, w.mirror, w.delta_version) as delta_version
    from lockstep.writes w
    where w.settled_at is not null;

-- -- version sets ------------------------------------------------------------------------------

-- Which Delta version of each mirror shows the source as of the end of an acknowledged batch. A row
-- holds from its batch on, until the table's next row. A table that cannot be read as of a batch has
-- a row that says why (`missing`) and, where it was merged together with later batches, the batch as
-- of which it can be read (`together`).
create table lockstep.version_sets (
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    mirror text,
    delta_version bigint,
    table_id text,
    missing text,
    together bigint,
    constraint version_sets_pk primary key (batch, database, name),
    constraint version_sets_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint version_sets_table foreign key (source, database, name) references lockstep.table_states,
    constraint version_sets_readable_or_missing check (
        (missing is null and num_nonnulls(mirror, delta_version) = 2)
        or (missing is not null and num_nonnulls(mirror, delta_version, table_id) = 0)
    ),
    constraint version_sets_together_of_missing check (
        (missing is not distinct from 'together') = (together is not null)
    )
);

create index version_sets_of_table on lockstep.version_sets (source, database, name, batch);

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

-- -- the lake and its catalogs -----------------------------------------------------------------

-- The Delta version up to which the log of a Delta table was searched for foreign commits.
create table lockstep.searched_folders (
    source text not null constraint searched_folders_source references lockstep.sources,
    folder text not null,
    delta_version bigint not null constraint searched_folders_version_not_negative check (delta_version >= 0),
    constraint searched_folders_pk primary key (source, folder)
);

-- Batches of earlier ledgers that still count, in a ledger that was made from its lake: those after
-- `above` up to `through`. Another ledger may have given the same numbers to batches of its own since.
create table lockstep.inherited (
    source text not null constraint inherited_source references lockstep.sources,
    above bigint not null,
    through bigint not null,
    constraint inherited_pk primary key (source, above),
    constraint inherited_span check (above >= 0 and above < through)
);

-- A mirror's entry in a catalog. It is recorded before it is made, without its content, and again
-- afterwards, so an entry that a killed run left there is known to be Lockstep's. No two tables of a
-- source have the same name in a catalog. `schema_version` is the structure that the entry has. While
-- an entry is being renamed, it has no content, and also the name that it gets: a killed run may leave
-- it under either.
create table lockstep.registrations (
    source text not null constraint registrations_source references lockstep.sources,
    catalog text not null,
    database text not null,
    name text not null,
    schema_name text not null,
    table_name text not null,
    location text not null,
    content text,
    schema_version integer,
    new_schema_name text,
    new_table_name text,
    constraint registrations_pk primary key (source, catalog, database, name),
    constraint registrations_name unique (source, catalog, schema_name, table_name),
    constraint registrations_made check ((content is null) = (schema_version is null)),
    constraint registrations_renamed check (
        (new_schema_name is null) = (new_table_name is null)
        and (new_table_name is null or content is null)
    )
);

-- The statement of the source up to which a catalog's entries have the comments of tables and columns.
-- Structures do not contain comments.
create table lockstep.catalogs (
    source text not null constraint catalogs_source references lockstep.sources,
    catalog text not null,
    statement bigint not null constraint catalogs_statement_not_negative check (statement >= 0),
    constraint catalogs_pk primary key (source, catalog)
);

-- -- consumers ---------------------------------------------------------------------------------

-- A named reader of a source's changelogs. A dropped one stays, with who dropped it and why.
create table lockstep.consumers (
    id bigint generated always as identity constraint consumers_pk primary key,
    source text not null constraint consumers_source references lockstep.sources,
    name text not null constraint consumers_named check (btrim(name) <> ''),
    start_batch bigint,
    created_at timestamptz not null default clock_timestamp(),
    dropped_at timestamptz,
    dropped_by text,
    dropped_because text,
    constraint consumers_of_source unique (source, id),
    constraint consumers_start foreign key (source, start_batch) references lockstep.batches (source, id),
    constraint consumers_drop_explained check (
        num_nonnulls(dropped_at, dropped_by, dropped_because) in (0, 3) and btrim(dropped_because) <> ''
    )
);

create unique index consumers_name_once on lockstep.consumers (source, name) where dropped_at is null;
create index consumers_by_start on lockstep.consumers (source, start_batch)
    where start_batch is not null;

-- A consumer begins after an acknowledged batch whose changes are still kept.
create function lockstep.consumers_begin() returns trigger language plpgsql as $$
begin
    if exists (select from lockstep.batches b where (b.source, b.id) = (new.source, new.start_batch)
               and b.state <> 'acknowledged') then
        perform lockstep.refuse('consumers_start_acknowledged', 'the batch is not acknowledged');
    end if;
    if coalesce(new.start_batch, 0) < lockstep.whole_after(new.source) then
        perform lockstep.refuse('consumers_start_kept', 'changes after that batch were deleted');
    end if;
    return new;
end
$$;

create trigger consumers_begin before insert on lockstep.consumers
    for each row execute function lockstep.consumers_begin();

create function lockstep.consumers_move() returns trigger language plpgsql as $$
begin
    if lockstep.changes_besides(old, new, 'dropped_at', 'dropped_by', 'dropped_because') then
        perform lockstep.refuse('consumers_stay', 'a consumer stays as it was made');
    end if;
    if old.dropped_at is not null then
        perform lockstep.refuse('consumers_dropped_once', 'the consumer is dropped');
    end if;
    return new;
end
$$;

create trigger consumers_move before update on lockstep.consumers
    for each row execute function lockstep.consumers_move();

-- A delivery: the acknowledged batches that a consumer was given at once. Deliveries of a consumer
-- leave no batch out, are acknowledged oldest first and rolled back newest first; its cursor is
-- derived from them.
create table lockstep.deliveries (
    id bigint generated always as identity constraint deliveries_pk primary key,
    source text not null,
    consumer bigint not null,
    first_batch bigint not null,
    last_batch bigint not null,
    state text not null default 'out' constraint deliveries_state_known check (
        state in ('out', 'acknowledged', 'rolled back')
    ),
    delivered_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    constraint deliveries_consumer foreign key (source, consumer) references lockstep.consumers (source, id),
    constraint deliveries_first_batch foreign key (source, first_batch)
        references lockstep.batches (source, id),
    constraint deliveries_last_batch foreign key (source, last_batch)
        references lockstep.batches (source, id),
    constraint deliveries_batches_ascend check (first_batch <= last_batch),
    constraint deliveries_ended_unless_out check ((ended_at is null) = (state = 'out'))
);

create index deliveries_out on lockstep.deliveries (consumer, id) where state = 'out';
create index deliveries_given on lockstep.deliveries (consumer, last_batch) where state <> 'rolled back';
create index deliveries_done on lockstep.deliveries (consumer, last_batch) where state = 'acknowledged';
create index deliveries_by_first on lockstep.deliveries (source, first_batch);
create index deliveries_by_last on lockstep.deliveries (source, last_batch);

-- The newest batch that a consumer has acknowledged, else the one after which it began; null if it
-- began at the first batch.
create function lockstep.consumed(a_consumer bigint) returns bigint language sql stable as $$
    select coalesce(
        (select max(d.last_batch) from lockstep.deliveries d
         where d.consumer = a_consumer and d.state = 'acknowledged'),
        (select c.start_batch from lockstep.consumers c where c.id = a_consumer))
$$;

-- The newest batch that was delivered to a consumer and not rolled back, else the one after which it
-- began; 0 if it began at the first batch.
create function lockstep.delivered_through(a_consumer bigint) returns bigint language sql stable as $$
    select coalesce(
        (select max(d.last_batch) from lockstep.deliveries d
         where d.consumer = a_consumer and d.state <> 'rolled back'),
        (select c.start_batch from lockstep.consumers c where c.id = a_consumer), 0)
$$;

-- Steps of one consumer are taken one at a time: the second sees what the first did.
create function lockstep.consumer_steps(a_consumer bigint) returns void language plpgsql as $$
declare
    owner lockstep.consumers;
begin
    select * into owner from lockstep.consumers c where c.id = a_consumer for no key update;
    if owner.dropped_at is not null then
        perform lockstep.refuse('deliveries_of_live_consumers', 'the consumer is dropped');
    end if;
end
$$;

create function lockstep.deliveries_begin() returns trigger language plpgsql as $$
begin
    perform lockstep.consumer_steps(new.consumer);
    if new.state <> 'out' then
        perform lockstep.refuse('deliveries_begin_out', 'a delivery begins as out');
    end if;
    if exists (select from lockstep.batches b where b.source = new.source and b.id <= new.last_batch
               and (b.state in ('capturing', 'captured', 'merged')
                    or b.id in (new.first_batch, new.last_batch) and b.state <> 'acknowledged')) then
        perform lockstep.refuse('deliveries_of_acknowledged_batches', 'a batch is not acknowledged');
    end if;
    if new.first_batch is distinct from (
        select min(b.id) from lockstep.batches b
        where b.source = new.source and b.state = 'acknowledged'
          and b.id > lockstep.delivered_through(new.consumer)) then
        perform lockstep.refuse('deliveries_go_on', 'it does not go on where the last one ended');
    end if;
    return new;
end
$$;

create trigger deliveries_begin before insert on lockstep.deliveries
    for each row execute function lockstep.deliveries_begin();

create function lockstep.deliveries_move() returns trigger language plpgsql as $$
begin
    perform lockstep.consumer_steps(old.consumer);
    if lockstep.changes_besides(old, new, 'state', 'ended_at') then
        perform lockstep.refuse('deliveries_stay', 'a delivery keeps its batches');
    end if;
    if old.state = 'acknowledged' then
        perform lockstep.refuse('deliveries_acknowledged_once', 'the delivery is acknowledged');
    end if;
    if old.state = 'rolled back' then
        perform lockstep.refuse('deliveries_rolled_back_once', 'the delivery is rolled back');
    end if;
    if new.state = 'acknowledged' and exists (
        select from lockstep.deliveries d
        where d.consumer = new.consumer and d.state = 'out' and d.id < new.id) then
        perform lockstep.refuse('deliveries_acknowledged_in_order', 'an older delivery is out');
    end if;
    return new;
end
$$;

create trigger deliveries_move before update on lockstep.deliveries
    for each row execute function lockstep.deliveries_move();

create function lockstep.deliveries_rolled_back() returns trigger language plpgsql as $$
begin
    if exists (select from lockstep.deliveries d
               where d.consumer = new.consumer and d.state = 'out' and d.id > new.id) then
        perform lockstep.refuse('deliveries_rolled_back_newest_first', 'a newer delivery is out');
    end if;
    return null;
end
$$;

create trigger deliveries_rolled_back after update on lockstep.deliveries
    for each row when (new.state = 'rolled back') execute function lockstep.deliveries_rolled_back();

-- -- the deletion of changes -------------------------------------------------------------------

-- Changes up to a batch that upkeep deletes. First this is recorded, so that readers of these changes
-- are refused from then on; then the changelogs no longer list their files, the files are deleted, and
-- the ledger's rows about them are deleted.
create table lockstep.forgotten (
    source text not null,
    through bigint not null,
    token bigint not null,
    noted_at timestamptz not null default clock_timestamp(),
    unlisted_at timestamptz,
    deleted_at timestamptz,
    pruned_at timestamptz,
    constraint forgotten_pk primary key (source, through),
    constraint forgotten_batch foreign key (source, through) references lockstep.batches (source, id),
    constraint forgotten_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint forgotten_deleted_after_unlisted check (deleted_at is null or unlisted_at is not null),
    constraint forgotten_pruned_deleted check (pruned_at is null or deleted_at is not null)
);

create function lockstep.forgotten_through(a_source text) returns bigint language sql stable as $$
    select coalesce(max(f.through), 0) from lockstep.forgotten f where f.source = a_source
$$;

create function lockstep.pruned_through(a_source text) returns bigint language sql stable as $$
    select coalesce(max(f.through), 0) from lockstep.forgotten f
    where f.source = a_source and f.deleted_at is not null
$$;

-- Who still needs changes of a source, and up to which batch changes may be deleted nevertheless.
create view lockstep.holding as
    select c.source, 'consumer' as kind, c.name as holder,
        coalesce(lockstep.consumed(c.id), 0) as through
    from lockstep.consumers c
    where c.dropped_at is null
    union all
    select b.source, 'batch', b.id::text, 0
    from lockstep.batches b
    where b.state in ('capturing', 'captured', 'merged')
    union all
    select t.source, 'table', t.database || '.' || t.name, case when exists (
            select from lockstep.table_events e
            where (e.source, e.database, e.name) = (t.source, t.database, t.name)
              and e.kind = 'rebuilt' and e.batch >= t.missing_since)
        then 0 else t.missing_since - 1 end
    from lockstep.table_states t
    where t.missing_since is not null
    union all
    select l.source, 'table', l.database || '.' || l.name, l.followed_batch - 1
    from lockstep.loads l
    where l.joined_batch is null and l.void_because is null and l.followed_batch is not null
    union all
    select w.source, 'table', w.database || '.' || w.name, w.first_batch - 1
    from lockstep.writes w
    where w.settled_at is null and w.given_up_at is null
    union all
    select r.source, 'replay', r.id::text, 0
    from lockstep.revisions r
    where r.state = 'open'
    union all
    -- A lost ledger is recovered from what the newest eight batches say of themselves in the lake.
    select s.name, 'recovery', s.name, coalesce((
        select min(x.batch) - 1 from (
            select distinct f.batch from lockstep.source_files f
            join lockstep.batches b on b.id = f.batch and b.state <> 'abandoned'
            where f.source = s.name and f.name = '_transactions'
            order by f.batch desc limit 8) x
        having count(*) = 8), 0)
    from lockstep.sources s;

-- Changes are deleted up to an acknowledged batch, each time further, and only those that nobody
-- needs.
create function lockstep.forgotten_begin() returns trigger language plpgsql as $$
begin
    if not exists (select from lockstep.batches b
                   where (b.source, b.id) = (new.source, new.through) and b.state = 'acknowledged') then
        perform lockstep.refuse('forgotten_acknowledged', 'the batch is not acknowledged');
    end if;
    if exists (select from lockstep.forgotten f where f.source = new.source
               and (f.through > new.through or f.unlisted_at is null)) then
        perform lockstep.refuse('forgotten_goes_on', 'what was forgotten before is still listed, or is more');
    end if;
    if exists (select from lockstep.holding h
               where h.source = new.source and h.through < new.through) then
        perform lockstep.refuse('forgotten_unneeded', 'somebody still needs changes up to that batch');
    end if;
    return new;
end
$$;

create trigger forgotten_begin before insert on lockstep.forgotten
    for each row execute function lockstep.forgotten_begin();

create function lockstep.forgotten_move() returns trigger language plpgsql as $$
begin
    if lockstep.changes_besides(old, new, 'unlisted_at', 'deleted_at', 'pruned_at')
        or old.unlisted_at is not null and new.unlisted_at is distinct from old.unlisted_at
        or old.deleted_at is not null and new.deleted_at is distinct from old.deleted_at
        or old.pruned_at is not null then
        perform lockstep.refuse('forgotten_move_on', 'what was done to forgotten changes stays done');
    end if;
    return new;
end
$$;

create trigger forgotten_move before update on lockstep.forgotten
    for each row execute function lockstep.forgotten_move();

-- -- tables that the settings show less of than before ------------------------------------------

-- A tightening: settings changed so that the lake shows less of a table. `columns`: columns that are
-- left out, masked or hashed now; `fewer_rows`: rows are left out; `rehashed`: values are hashed with
-- another key. What was captured up to the batch `through` still shows the earlier values until they
-- are cleared. `kept_because`: why a person keeps them. `begun_at`: from then on no reader is given
-- those changes; `cleared_at`: none of the values is left in the lake or the ledger.
create table lockstep.tightened (
    id bigint generated always as identity constraint tightened_pk primary key,
    source text not null,
    database text not null,
    name text not null,
    through bigint not null,
    token bigint not null,
    columns text[] not null,
    fewer_rows boolean not null,
    rehashed boolean not null,
    kept_because text constraint tightened_kept_reasoned check (btrim(kept_because) <> ''),
    noted_at timestamptz not null default clock_timestamp(),
    begun_at timestamptz,
    cleared_at timestamptz,
    constraint tightened_batch foreign key (source, through) references lockstep.batches (source, id),
    constraint tightened_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint tightened_less check (fewer_rows or rehashed or cardinality(columns) > 0),
    constraint tightened_kept_or_begun check (kept_because is null or begun_at is null),
    constraint tightened_cleared_after_begun check (cleared_at is null or begun_at is not null)
);

create index tightened_by_batch on lockstep.tightened (source, through);

-- The newest batch whose changes of a table nobody is given any more, because they show earlier values.
create function lockstep.cleared_through(a_source text, a_database text, a_name text) returns bigint
language sql stable as $$
    select coalesce(max(t.through), 0) from lockstep.tightened t
    where (t.source, t.database, t.name) = (a_source, a_database, a_name) and t.begun_at is not null
$$;

-- The batch after which the changes of all tables of a source can be read.
create function lockstep.whole_after(a_source text) returns bigint language sql stable as $$
    select greatest(lockstep.forgotten_through(a_source), (
        select max(t.through) from lockstep.tightened t
        where t.source = a_source and t.begun_at is not null))
$$;

-- Who still needs changes from before a tightening, so that they are not cleared. `recovery` does not
-- count: a lost ledger is made again from commits of `_transactions`, which stay. 'reload': the mirror
-- was not written since. 'gone': it will not be written, because the table was dropped; the values are
-- cleared once a person has deleted the mirror.
create view lockstep.holding_clear as
    select t.id, h.kind, h.holder, h.through
    from lockstep.tightened t
    join lockstep.holding h on h.source = t.source and h.through < t.through
    where t.cleared_at is null and t.kept_because is null
      and (h.kind in ('consumer', 'batch', 'replay')
           or h.kind = 'table' and h.holder = t.database || '.' || t.name)
    union all
    select t.id, coalesce(g.kind, 'reload'), coalesce(g.mirror, t.database || '.' || t.name), 0
    from lockstep.tightened t
    left join lateral (
        select 'gone' as kind, s.mirror, s.stopped_batch from lockstep.table_states s
        where (s.source, s.database, s.name) = (t.source, t.database, t.name)
          and s.condition = 'dropped') g on true
    where t.cleared_at is null and t.kept_because is null
      and not exists (
          select from lockstep.writes w
          where (w.source, w.database, w.name) = (t.source, t.database, t.name)
            and w.settled_at is not null and w.last_batch > t.through
            and (g.stopped_batch is null or w.last_batch < g.stopped_batch));

create function lockstep.tightened_move() returns trigger language plpgsql as $$
begin
    if lockstep.changes_besides(old, new, 'kept_because', 'begun_at', 'cleared_at')
        or old.begun_at is not null and new.begun_at is distinct from old.begun_at
        or old.cleared_at is not null then
        perform lockstep.refuse('tightened_move_on', 'what was cleared stays so');
    end if;
    if old.begun_at is null and new.begun_at is not null and exists (
            select from lockstep.holding_clear h where h.id = new.id and h.kind <> 'gone') then
        perform lockstep.refuse('tightened_unneeded', 'somebody still needs the earlier values');
    end if;
    return new;
end
$$;

create trigger tightened_move before update on lockstep.tightened
    for each row execute function lockstep.tightened_move();

-- Rows with this trigger are never changed or deleted, with two exceptions: lockstep.prune_contents,
-- prune_leases and prune_batches delete them, and clearing replaces values of the columns named here.
create function lockstep.stays_but() returns trigger language plpgsql as $$
declare
    column_name name;
    differs boolean := tg_op = 'DELETE' or current_setting('lockstep.clearing', true) is distinct from 'on';
begin
    if tg_op = 'DELETE' and current_setting('lockstep.pruning', true) = 'on' then
        return old;
    end if;
    -- Values are compared as text: jsonb refuses what a column of type json may contain.
    for column_name in
        select a.attname from pg_attribute a
        where a.attrelid = tg_relid and a.attnum > 0 and not a.attisdropped
          and a.attgenerated = '' and a.attname <> all(tg_argv[1:])
    loop
        exit when differs;
        execute format('select ($1).%1$I::text is distinct from ($2).%1$I::text', column_name)
        into differs using new, old;
    end loop;
    if differs then
        perform lockstep.refuse(tg_argv[0], 'rows of ' || tg_table_name || ' are never changed or deleted');
    end if;
    return new;
end
$$;

-- All references to batches, besides those of the chain: foreign keys, and the batches in which tables
-- stopped, by the details of their events.
create view lockstep.batch_uses as
    select source, batch from lockstep.capture_scopes
    union all select source, start_batch from lockstep.consumers
    union all select source, batch from lockstep.database_versions
    union all select source, previous_batch from lockstep.decisions
    union all select source, first_batch from lockstep.deliveries
    union all select source, last_batch from lockstep.deliveries
    union all select source, batch from lockstep.extents
    union all select source, through from lockstep.forgotten
    union all select source, followed_batch from lockstep.loads
    union all select source, joined_batch from lockstep.loads
    union all select source, batch from lockstep.prepared
    union all select source, ended_by from lockstep.prepared
    union all select source, batch from lockstep.schema_statements
    union all select source, batch from lockstep.segments
    union all select source, batch from lockstep.set_anchors
    union all select source, batch from lockstep.snapshots
    union all select source, batch from lockstep.source_files
    union all select source, batch from lockstep.table_events
    union all select source, batch from lockstep.table_life
    union all select source, (details ->> 'stopped_batch')::bigint from lockstep.table_life
    union all select source, done_batch from lockstep.table_orders
    union all select source, missing_since from lockstep.table_states
    union all select source, stopped_batch from lockstep.table_states
    union all select source, batch from lockstep.table_versions
    union all select source, through from lockstep.tightened
    union all select source, batch from lockstep.version_sets
    union all select source, first_batch from lockstep.writes
    union all select source, last_batch from lockstep.writes;

-- All references to leases.
create view lockstep.lease_uses as
    select source, token from lockstep.batches
    union all select source, token from lockstep.decisions
    union all select source, token from lockstep.forgotten
    union all select source, token from lockstep.loads
    union all select source, token from lockstep.overrides
    union all select source, token from lockstep.revisions
    union all select source, token from lockstep.spark_clients
    union all select source, token from lockstep.table_life
    union all select source, token from lockstep.table_orders
    union all select source, token from lockstep.tightened
    union all select source, token from lockstep.upkept
    union all select source, token from lockstep.writes
    union all select source, settled_token from lockstep.writes;

-- Only the functions below delete rows: a slice in each transaction, and only once the files that the
-- rows are about are deleted.
create function lockstep.require_deleted(a_source text, through bigint) returns void
language plpgsql as $$
begin
    if not exists (select from lockstep.forgotten f
                   where (f.source, f.through) = (a_source, require_deleted.through)
                     and f.deleted_at is not null) then
        perform lockstep.refuse('pruned_deleted', 'files of these batches may still be there');
    end if;
end
$$;

-- Deletes rows about the next `most` ids of batches after `above`, up to `through`, the last batch whose
-- changes are deleted: files; segments, version sets, writes, anchors and deliveries that are followed
-- by a newer one up to `through`; XA transactions that ended there, unless a stopped table may read the
-- log from there again. `last_id`: the last of these ids.
create function lockstep.prune_contents(
    a_source text, above bigint, through bigint, most integer,
    out deleted_rows bigint, out last_id bigint, out is_complete boolean
) language plpgsql as $$
declare
    deleted bigint;
begin
    perform lockstep.require_deleted(a_source, through);
    perform set_config('lockstep.pruning', 'on', true);
    last_id := least(above + most, through);
    is_complete := last_id = through;

    delete from lockstep.segment_files x using lockstep.segments s
    where s.id = x.segment and s.source = a_source and s.batch > above and s.batch <= last_id;
    get diagnostics deleted_rows = row_count;
    delete from lockstep.revised_files x using lockstep.segments s
    where s.id = x.segment and s.source = a_source and s.batch > above and s.batch <= last_id;
    get diagnostics deleted = row_count; deleted_rows := deleted_rows + deleted;
    delete from lockstep.segments s
    where s.source = a_source and s.batch <= last_id
      and exists (
          select from lockstep.segments n
          where (n.source, n.database, n.name) = (s.source, s.database, s.name)
            and n.batch > s.batch and n.batch <= prune_contents.through
            and (select b.state <> 'abandoned' from lockstep.batches b where b.id = n.batch));
    get diagnostics deleted = row_count; deleted_rows := deleted_rows + deleted;
    delete from lockstep.version_sets v
    where v.source = a_source and v.batch <= last_id
      and exists (
          select from lockstep.version_sets n
          where (n.source, n.database, n.name) = (v.source, v.database, v.name)
            and n.batch > v.batch and n.batch <= prune_contents.through);
    get diagnostics deleted = row_count; deleted_rows := deleted_rows + deleted;
    delete from lockstep.source_files x
    where x.source = a_source and x.batch > above and x.batch <= last_id;
    get diagnostics deleted = row_count; deleted_rows := deleted_rows + deleted;

    delete from lockstep.writes w
    where w.source = a_source and w.last_batch <= last_id
      and (w.settled_at is not null or w.given_up_at is not null)
      and exists (
          select from lockstep.writes n
          where (n.source, n.database, n.name, n.app_id) = (w.source, w.database, w.name, w.app_id)
            and n.settled_at is not null and n.last_batch between w.last_batch and prune_contents.through
            and n.txn_version > w.txn_version
            and n.delta_version > coalesce(w.delta_version, -1));
    get diagnostics deleted = row_count; deleted_rows := deleted_rows + deleted;

    delete from lockstep.set_anchors w
    where w.source = a_source and w.batch <= last_id
      and exists (
          select from lockstep.set_anchors n
          where (n.source, n.origin) = (w.source, w.origin)
            and n.batch > w.batch and n.batch <= prune_contents.through
            and (select b.state <> 'abandoned' from lockstep.batches b where b.id = n.batch));
    get diagnostics deleted = row_count; deleted_rows := deleted_rows + deleted;

    delete from lockstep.deliveries d
    where d.source = a_source and d.last_batch <= last_id
      and d.state <> 'out'
      and exists (
          select from lockstep.deliveries n
          where n.consumer = d.consumer and n.state = 'acknowledged' and n.last_batch > d.last_batch);
    get diagnostics deleted = row_count; deleted_rows := deleted_rows + deleted;

    delete from lockstep.prepared p
    where p.source = a_source and p.batch <= last_id and (p.abandoned or p.ended_by <= last_id)
      and not exists (
          select from lockstep.table_states t
          where t.source = a_source and t.stopped_batch <= coalesce(p.ended_by, p.batch));
    get diagnostics deleted = row_count; deleted_rows := deleted_rows + deleted;

    perform set_config('lockstep.pruning', '', true);
end
$$;

-- Deletes the decisions under the next `most` leases after `above`, before that of the batch `through`,
-- except those by which a batch began; and the leases to which nothing refers any more. After the last
-- lease it also deletes the pruned rows of `forgotten`, except the newest. `last_id`: the last lease
-- that was examined.
create function lockstep.prune_leases(
    a_source text, above bigint, through bigint, most integer,
    out deleted_rows bigint, out last_id bigint, out is_complete boolean
) language plpgsql as $$
declare
    deleted bigint;
begin
    perform lockstep.require_deleted(a_source, through);
    perform set_config('lockstep.pruning', 'on', true);

    select max(x.token), count(*) < most into last_id, is_complete from (
        select l.token from lockstep.leases l
        where l.source = a_source and l.token > above and l.token < (
            select b.token from lockstep.batches b
            where (b.source, b.id) = (a_source, prune_leases.through))
        order by l.token limit most) x;
    last_id := coalesce(last_id, above);

    delete from lockstep.decisions d
    where d.source = a_source and d.token > above and d.token <= last_id
      and d.kind in ('start', 'idle', 'refusal', 'failure')
      and not exists (select from lockstep.batches b
                      where (b.source, b.start_decision) = (d.source, d.id));
    get diagnostics deleted_rows = row_count;
    if is_complete then
        delete from lockstep.forgotten f
        where f.source = a_source and exists (
            select from lockstep.forgotten n
            where n.source = a_source and n.pruned_at is not null
              and n.through > f.through and n.through < prune_leases.through
        ) and f.pruned_at is not null;
        get diagnostics deleted = row_count; deleted_rows := deleted_rows + deleted;
    end if;
    delete from lockstep.leases l
    where l.source = a_source and l.token > above and l.token <= last_id
      and not exists (select from lockstep.lease_uses u
                      where (u.source, u.token) = (l.source, l.token));
    get diagnostics deleted = row_count; deleted_rows := deleted_rows + deleted;

    perform set_config('lockstep.pruning', '', true);
end
$$;

-- Deletes those of the next `most` batches after `above` and before `through` that nothing refers to,
-- with their leases. A live batch that a decision began stays. So does the newest that could be
-- resumed by GTIDs, because it matters whether there ever was one. `last_id`: the last batch that was
-- examined.
create function lockstep.prune_batches(
    a_source text, above bigint, through bigint, most integer,
    out deleted_rows bigint, out last_id bigint, out is_complete boolean
) language plpgsql as $$
declare
    deleted bigint;
    batches bigint[];
    tokens bigint[];
begin
    perform lockstep.require_deleted(a_source, through);
    perform set_config('lockstep.pruning', 'on', true);
    set constraints lockstep.batches_previous, lockstep.batches_start_at_end_of_continued deferred;

    select max(x.id), count(*) < most into last_id, is_complete from (
        select b.id from lockstep.batches b
        where b.source = a_source and b.id > above and b.id < prune_batches.through
        order by b.id limit most) x;
    last_id := coalesce(last_id, above);

    with went as (
        delete from lockstep.batches b
        where b.source = a_source and b.id > above and b.id <= last_id
          and b.state in ('acknowledged', 'abandoned')
          and (b.state = 'abandoned' or b.start_decision is null)
          and (not b.by_gtid or exists (
              select from lockstep.batches n
              where n.source = a_source and n.id > b.id and n.by_gtid and n.state <> 'abandoned'))
          and not exists (select from lockstep.batch_uses u
                          where (u.source, u.batch) = (b.source, b.id))
        returning b.id, b.token
    )
    select coalesce(array_agg(w.id), '{}'), coalesce(array_agg(distinct w.token), '{}')
    into batches, tokens from went w;
    deleted_rows := cardinality(batches);

    update lockstep.batches b set
        forgotten_batch = coalesce(b.forgotten_batch, b.continued_batch),
        continued_batch = null,
        previous_batch = (select max(w.id) from lockstep.batches w
                   where w.source = a_source and w.id < b.id and w.state <> 'abandoned')
    where b.source = a_source and b.previous_batch = any(batches);
    set constraints lockstep.batches_previous, lockstep.batches_start_at_end_of_continued immediate;

    delete from lockstep.leases l
    where l.source = a_source and l.token = any(tokens)
      and l.token < (select s.token from lockstep.sources s where s.name = a_source)
      and not exists (select from lockstep.lease_uses u
                      where (u.source, u.token) = (l.source, l.token));
    get diagnostics deleted = row_count; deleted_rows := deleted_rows + deleted;

    perform set_config('lockstep.pruning', '', true);
end
$$;

-- -- rows that stay as they were recorded ------------------------------------------------------

do $$
declare
    table_name text;
    columns text[];
begin
    -- Never changed, and deleted only by lockstep.prune_contents, prune_leases and prune_batches.
    foreach table_name in array array[
        'ledger', 'overrides', 'decisions', 'capture_scopes', 'set_anchors',
        'database_versions', 'table_life', 'table_events', 'extents', 'segments',
        'segment_files', 'snapshots', 'snapshot_files', 'revised_files', 'upkept',
        'version_sets'
    ] loop
        execute format('create trigger %1$I before update or delete on lockstep.%2$I'
            ' for each row execute function lockstep.stays(%1$L)', table_name || '_stay', table_name);
    end loop;
    -- Deleted only by them; other triggers say which changes of these rows are allowed.
    foreach table_name in array array[
        'leases', 'batches', 'prepared', 'table_orders', 'revisions', 'writes',
        'consumers', 'deliveries', 'forgotten', 'tightened'
    ] loop
        execute format('create trigger %1$I before delete on lockstep.%2$I'
            ' for each row execute function lockstep.stays(%1$L)', table_name || '_stay', table_name);
    end loop;
    -- Never changed, except for values that are cleared, and deleted only by them.
    for table_name, columns in values
        ('source_files', '{path,size,sha256}'::text[]),
        ('schema_statements', '{text,context,effects}'),
        ('table_versions', '{schema,fingerprint,shown_as,reason}')
    loop
        execute format('create trigger %1$I before update or delete on lockstep.%2$I'
            ' for each row execute function lockstep.stays_but(%1$L%3$s)',
            table_name || '_stay', table_name, (select string_agg(format(', %L', c), '') from unnest(columns) c));
    end loop;
    -- Recorded only by the capture of their batch.
    foreach table_name in array array[
        'capture_scopes', 'set_anchors', 'source_files', 'prepared', 'schema_statements',
        'database_versions', 'table_versions', 'table_life', 'table_events', 'segments', 'snapshots'
    ] loop
        execute format('create trigger %I before insert on lockstep.%I'
            ' for each row execute function lockstep.while_capturing(%L)',
            table_name || '_recorded', table_name, table_name || '_while_capturing');
    end loop;
end
$$;
