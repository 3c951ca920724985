-- Batches whose changes are gone, and the leases they were captured under, go as well, but for those
-- that something else refers to. A batch whose predecessor went says which one it was, and goes on
-- behind the newest batch before it that stays: live batches are one chain as before.

-- Who refers to a batch, besides the chain: all foreign keys, and where events say a table stopped.
create view lockstep.batch_uses as
    select source, batch from lockstep.capture_scopes
    union all select source, start_batch from lockstep.consumers
    union all select source, batch from lockstep.database_versions
    union all select source, follows from lockstep.decisions
    union all select source, first_batch from lockstep.deliveries
    union all select source, last_batch from lockstep.deliveries
    union all select source, batch from lockstep.extents
    union all select source, through from lockstep.forgotten
    union all select source, batch from lockstep.handovers
    union all select source, followed_batch from lockstep.loads
    union all select source, joined_batch from lockstep.loads
    union all select source, batch from lockstep.prepared
    union all select source, ended_by from lockstep.prepared
    union all select source, batch from lockstep.schema_statements
    union all select source, batch from lockstep.segments
    union all select source, batch from lockstep.set_witnesses
    union all select source, batch from lockstep.snapshots
    union all select source, batch from lockstep.source_files
    union all select source, batch from lockstep.table_events
    union all select source, batch from lockstep.table_life
    union all select source, (told ->> 'stopped_batch')::bigint from lockstep.table_life
    union all select source, done_batch from lockstep.table_orders
    union all select source, behind_batch from lockstep.table_states
    union all select source, stopped_batch from lockstep.table_states
    union all select source, batch from lockstep.table_versions
    union all select source, batch from lockstep.version_sets
    union all select source, first_batch from lockstep.writes
    union all select source, last_batch from lockstep.writes;

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
    union all select source, token from lockstep.upkept
    union all select source, token from lockstep.writes;

-- Each of these keys is asked for every row that goes.
create index batches_by_follows on lockstep.batches (source, follows) where follows is not null;
create index batches_by_predecessor on lockstep.batches (source, predecessor)
    where predecessor is not null;
create index consumers_by_start on lockstep.consumers (source, start_batch)
    where start_batch is not null;
create index database_versions_by_batch on lockstep.database_versions (source, batch);
create index decisions_by_follows on lockstep.decisions (source, follows) where follows is not null;
create index deliveries_by_first on lockstep.deliveries (source, first_batch);
create index deliveries_by_last on lockstep.deliveries (source, last_batch);
create index extents_by_batch on lockstep.extents (source, batch);
create index prepared_by_end on lockstep.prepared (source, ended_by) where ended_by is not null;
create index schema_statements_by_batch on lockstep.schema_statements (source, batch);
create index table_life_by_stop on lockstep.table_life
    (source, ((told ->> 'stopped_batch')::bigint));
create index table_life_by_token on lockstep.table_life (source, token) where token is not null;
create index table_states_by_behind on lockstep.table_states (source, behind_batch)
    where behind_batch is not null;
create index table_states_by_stopped on lockstep.table_states (source, stopped_batch)
    where stopped_batch is not null;
create index table_versions_by_batch on lockstep.table_versions (source, batch);
create index upkept_by_token on lockstep.upkept (source, token);
create index writes_by_first on lockstep.writes (source, first_batch);
create index writes_by_last on lockstep.writes (source, last_batch);

-- -- the chain -----------------------------------------------------------------------------

alter table lockstep.batches
    add column forgotten_predecessor bigint,
    drop constraint batches_one_origin,
    add constraint batches_one_origin
        check (num_nonnulls(predecessor, start_decision, forgotten_predecessor) = 1),
    add constraint batches_follow_earlier check (follows < id),
    add constraint batches_forgotten_between check (forgotten_predecessor is null
        or coalesce(follows < forgotten_predecessor and forgotten_predecessor < id, false)),
    -- While a batch goes, the one behind it is told what it goes on behind.
    alter constraint batches_follows deferrable initially immediate,
    alter constraint batches_start_at_predecessors_end deferrable initially immediate;

create function lockstep.refuse_forgotten_predecessor() returns trigger language plpgsql as $$
begin
    perform lockstep.refuse('batches_begin_behind', 'a batch begins behind one that is there');
    return null;
end
$$;

create trigger batches_begin_behind before insert on lockstep.batches
    for each row when (new.forgotten_predecessor is not null)
    execute function lockstep.refuse_forgotten_predecessor();

create function lockstep.batches_may_be_relinked(old lockstep.batches, new lockstep.batches)
returns void language plpgsql as $$
declare
    links text[] := '{predecessor,follows,forgotten_predecessor,start_gtid_digest,end_gtid_digest}';
begin
    if to_jsonb(new) - links <> to_jsonb(old) - links
        or new.predecessor is not null
        or new.forgotten_predecessor is null
        or new.forgotten_predecessor <> coalesce(old.forgotten_predecessor, old.predecessor)
        or exists (select from lockstep.batches b where b.id = old.follows)
        or new.follows is distinct from (
            select max(b.id) from lockstep.batches b
            where b.source = old.source and b.id < old.id and b.state <> 'abandoned') then
        perform lockstep.refuse('batches_relinked',
            'only what a batch goes on behind changes, and only once its predecessor is gone');
    end if;
end
$$;

create or replace function lockstep.batches_keep() returns trigger language plpgsql as $$
begin
    if current_setting('lockstep.pruning', true) = 'on' then
        perform lockstep.batches_may_be_relinked(old, new);
        return new;
    end if;
    if (new.follows, new.kind, new.forgotten_predecessor)
            is distinct from (old.follows, old.kind, old.forgotten_predecessor) then
        perform lockstep.refuse('batches_start_stays', 'a batch keeps what it follows and what it is');
    end if;
    if old.state <> 'capturing' and (new.by_gtid, new.server_started_at, new.server_resets)
            is distinct from (old.by_gtid, old.server_started_at, old.server_resets) then
        perform lockstep.refuse('batches_end_stays', 'a captured batch keeps its end');
    end if;
    return new;
end
$$;

-- Else it is what batches_keep judged already.
drop trigger batches_move on lockstep.batches;
create trigger batches_move before update on lockstep.batches
    for each row when (current_setting('lockstep.pruning', true) is distinct from 'on')
    execute function lockstep.batches_move();

create function lockstep.batches_go() returns trigger language plpgsql as $$
begin
    if old.id >= lockstep.pruned_through(old.source)
        or old.state not in ('acknowledged', 'abandoned')
        or old.state = 'acknowledged' and old.start_decision is not null then
        perform lockstep.refuse('batches_go_forgotten',
            'a batch goes once its changes are gone, but for one that began a chain');
    end if;
    return old;
end
$$;

create trigger batches_go before delete on lockstep.batches
    for each row when (current_setting('lockstep.pruning', true) = 'on')
    execute function lockstep.batches_go();

-- -- what goes -----------------------------------------------------------------------------

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

-- What is about the batches behind `above` up to `last`, which were forgotten up to `through`: their
-- files; segments, versions of mirrors, writes, witnesses and deliveries that newer ones up to there
-- followed, which earlier notes had left as the newest among them; XA transactions that ended there,
-- unless a table that stopped before may read the log from there once more.
create or replace function lockstep.prune(
    a_source text, above bigint, last bigint, through bigint
) returns bigint language plpgsql as $$
declare
    gone bigint := 0;
    met bigint;
begin
    perform lockstep.require_deleted(a_source, case when last <= through then through end);
    perform set_config('lockstep.pruning', 'on', true);

    delete from lockstep.segment_files x using lockstep.segments s
    where s.id = x.segment and s.source = a_source and s.batch > above and s.batch <= last;
    get diagnostics met = row_count; gone := gone + met;
    delete from lockstep.revised_files x using lockstep.segments s
    where s.id = x.segment and s.source = a_source and s.batch > above and s.batch <= last;
    get diagnostics met = row_count; gone := gone + met;
    delete from lockstep.segments s
    where s.source = a_source and s.batch <= last
      and exists (
          select from lockstep.segments n
          where (n.source, n.database, n.name) = (s.source, s.database, s.name)
            and n.batch > s.batch and n.batch <= prune.through);
    get diagnostics met = row_count; gone := gone + met;
    delete from lockstep.version_sets v
    where v.source = a_source and v.batch <= last
      and exists (
          select from lockstep.version_sets n
          where (n.source, n.database, n.name) = (v.source, v.database, v.name)
            and n.batch > v.batch and n.batch <= prune.through);
    get diagnostics met = row_count; gone := gone + met;
    delete from lockstep.source_files x
    where x.source = a_source and x.batch > above and x.batch <= last;
    get diagnostics met = row_count; gone := gone + met;

    delete from lockstep.writes w
    where w.source = a_source and w.last_batch <= last
      and (w.settled_at is not null or w.given_up_at is not null)
      and exists (
          select from lockstep.writes n
          where (n.source, n.database, n.name, n.app_id) = (w.source, w.database, w.name, w.app_id)
            and n.settled_at is not null and n.last_batch between w.last_batch and prune.through
            and n.txn_version > w.txn_version
            and n.delta_version > coalesce(w.delta_version, -1));
    get diagnostics met = row_count; gone := gone + met;

    delete from lockstep.set_witnesses w
    where w.source = a_source and w.batch <= last
      and exists (
          select from lockstep.set_witnesses n
          where (n.source, n.origin) = (w.source, w.origin)
            and n.batch > w.batch and n.batch <= prune.through);
    get diagnostics met = row_count; gone := gone + met;

    delete from lockstep.deliveries d
    where d.source = a_source and d.last_batch <= last
      and d.state <> 'out'
      and exists (
          select from lockstep.deliveries n
          where n.consumer = d.consumer and n.state = 'acknowledged' and n.last_batch > d.last_batch);
    get diagnostics met = row_count; gone := gone + met;

    delete from lockstep.prepared p
    where p.source = a_source and p.batch <= last and (p.abandoned or p.ended_by <= last)
      and not exists (
          select from lockstep.table_states t
          where t.source = a_source and t.stopped_batch <= coalesce(p.ended_by, p.batch));
    get diagnostics met = row_count; gone := gone + met;

    perform set_config('lockstep.pruning', '', true);
    return gone;
end
$$;

-- Of the next `most` leases behind `above`, up to that of the batch `through`: what was decided under
-- them, unless a batch began by it; and themselves, once nothing else is left of them. With the last
-- of them go notes before the newest one that was pruned. `reached`: the last that was looked at.
create function lockstep.prune_leases(
    a_source text, above bigint, through bigint, most integer,
    out gone bigint, out reached bigint, out ended boolean
) language plpgsql as $$
declare
    met bigint;
begin
    perform lockstep.require_deleted(a_source, through);
    perform set_config('lockstep.pruning', 'on', true);

    select max(x.token), count(*) < most into reached, ended from (
        select l.token from lockstep.leases l
        where l.source = a_source and l.token > above and l.token < (
            select b.token from lockstep.batches b
            where (b.source, b.id) = (a_source, prune_leases.through))
        order by l.token limit most) x;
    reached := coalesce(reached, above);

    delete from lockstep.decisions d
    where d.source = a_source and d.token > above and d.token <= reached
      and d.kind in ('start', 'idle', 'refusal', 'failure')
      and not exists (select from lockstep.batches b
                      where (b.source, b.start_decision) = (d.source, d.id));
    get diagnostics gone = row_count;
    if ended then
        delete from lockstep.forgotten f
        where f.source = a_source and exists (
            select from lockstep.forgotten n
            where n.source = a_source and n.pruned_at is not null
              and n.through > f.through and n.through < prune_leases.through
        ) and f.pruned_at is not null;
        get diagnostics met = row_count; gone := gone + met;
    end if;
    delete from lockstep.leases l
    where l.source = a_source and l.token > above and l.token <= reached
      and not exists (select from lockstep.lease_uses u
                      where (u.source, u.token) = (l.source, l.token));
    get diagnostics met = row_count; gone := gone + met;

    perform set_config('lockstep.pruning', '', true);
end
$$;

-- Of the next `most` batches behind `above` and before `through`: those that nothing refers to, with
-- their leases. One that began by a decision stays, and the newest that could be resumed by GTIDs
-- (whether there ever was one counts). `reached`: the last that was looked at.
create function lockstep.prune_batches(
    a_source text, above bigint, through bigint, most integer,
    out gone bigint, out reached bigint, out ended boolean
) language plpgsql as $$
declare
    met bigint;
    batches bigint[];
    tokens bigint[];
begin
    perform lockstep.require_deleted(a_source, through);
    perform set_config('lockstep.pruning', 'on', true);
    set constraints lockstep.batches_follows, lockstep.batches_start_at_predecessors_end deferred;

    select max(x.id), count(*) < most into reached, ended from (
        select b.id from lockstep.batches b
        where b.source = a_source and b.id > above and b.id < prune_batches.through
        order by b.id limit most) x;
    reached := coalesce(reached, above);

    with went as (
        delete from lockstep.batches b
        where b.source = a_source and b.id > above and b.id <= reached
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
    gone := cardinality(batches);

    update lockstep.batches b set
        forgotten_predecessor = coalesce(b.forgotten_predecessor, b.predecessor),
        predecessor = null,
        follows = (select max(w.id) from lockstep.batches w
                   where w.source = a_source and w.id < b.id and w.state <> 'abandoned')
    where b.source = a_source and b.follows = any(batches);
    set constraints lockstep.batches_follows, lockstep.batches_start_at_predecessors_end immediate;

    delete from lockstep.leases l
    where l.source = a_source and l.token = any(tokens)
      and l.token < (select s.token from lockstep.sources s where s.name = a_source)
      and not exists (select from lockstep.lease_uses u
                      where (u.source, u.token) = (l.source, l.token));
    get diagnostics met = row_count; gone := gone + met;

    perform set_config('lockstep.pruning', '', true);
end
$$;
