-- Rows about changes that are gone from the lake: nobody can ask for what they tell. They go in
-- slices of batches, each a transaction, and by one function alone; any other DELETE is refused.

alter table lockstep.forgotten
    add column pruned_at timestamptz,
    add constraint forgotten_pruned_deleted check (pruned_at is null or deleted_at is not null);

create or replace function lockstep.forgotten_move() returns trigger language plpgsql as $$
begin
    if (new.source, new.through, new.token, new.noted_at)
        is distinct from (old.source, old.through, old.token, old.noted_at)
        or old.unlisted_at is not null and new.unlisted_at is distinct from old.unlisted_at
        or old.deleted_at is not null and new.deleted_at is distinct from old.deleted_at
        or old.pruned_at is not null then
        perform lockstep.refuse('forgotten_move_on', 'what was done to forgotten changes stays done');
    end if;
    return new;
end
$$;

create or replace function lockstep.stays() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and current_setting('lockstep.pruning', true) = 'on' then
        return old;
    end if;
    perform lockstep.refuse(tg_argv[0], 'rows of ' || tg_table_name || ' are never changed or deleted');
    return null;
end
$$;

-- For the foreign keys of what goes: each is asked for every row.
create index batches_by_decision on lockstep.batches (source, start_decision)
    where start_decision is not null;
create index batches_by_token on lockstep.batches (source, token);
create index decisions_by_token on lockstep.decisions (source, token);
create index writes_by_token on lockstep.writes (source, token);

-- What is about the batches behind `above` up to `last`, which were forgotten up to `through`: their
-- files; segments, versions of mirrors, writes, witnesses and deliveries that newer ones up to there
-- followed, which earlier notes had left as the newest among them; and, once these are the last,
-- decisions and leases of runs that began no batch.
create index segments_of_table on lockstep.segments (source, database, name, batch);

create function lockstep.pruned_through(a_source text) returns bigint
language sql stable as $$
    select coalesce(max(f.through), 0) from lockstep.forgotten f
    where f.source = a_source and f.deleted_at is not null
$$;

create function lockstep.prune(
    a_source text, above bigint, last bigint, through bigint
) returns bigint language plpgsql as $$
declare
    moment timestamptz;
    gone bigint := 0;
    met bigint;
begin
    if last > through or not exists (
        select from lockstep.forgotten f
        where (f.source, f.through) = (a_source, prune.through) and f.deleted_at is not null) then
        perform lockstep.refuse('pruned_deleted', 'files of these batches may still be there');
    end if;
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

    if last = through then
        select b.acknowledged_at into moment from lockstep.batches b where b.id = prune.through;
        delete from lockstep.decisions d
        where d.source = a_source and d.decided_at < moment
          and d.kind in ('start', 'idle', 'refusal', 'failure')
          and not exists (select from lockstep.batches b
                          where (b.source, b.start_decision) = (d.source, d.id));
        get diagnostics met = row_count; gone := gone + met;
        delete from lockstep.leases l
        where l.source = a_source and l.taken_at < moment
          and l.token < (select s.token from lockstep.sources s where s.name = a_source)
          and not exists (select from lockstep.batches x
                          where (x.source, x.token) = (l.source, l.token))
          and not exists (select from lockstep.decisions x
                          where (x.source, x.token) = (l.source, l.token))
          and not exists (select from lockstep.writes x
                          where (x.source, x.token) = (l.source, l.token))
          and l.token not in (
              select x.token from lockstep.overrides x where x.source = a_source
              union select x.token from lockstep.loads x where x.source = a_source
              union select x.token from lockstep.table_orders x where x.source = a_source
              union select x.token from lockstep.revisions x where x.source = a_source
              union select x.token from lockstep.upkept x where x.source = a_source
              union select x.token from lockstep.forgotten x where x.source = a_source
              union select x.token from lockstep.table_life x
                  where x.source = a_source and x.token is not null);
        get diagnostics met = row_count; gone := gone + met;
    end if;

    perform set_config('lockstep.pruning', '', true);
    return gone;
end
$$;
