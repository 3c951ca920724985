-- How a chain of batches goes on where its predecessor's end is not its start: another
-- server, another file, or a place that a person chose. And a holder's signs of life.

create table lockstep.overrides (
    id bigint generated always as identity constraint overrides_pk primary key,
    source text not null,
    token bigint not null,
    place text not null constraint overrides_place_named check (place <> ''),
    reason text not null constraint overrides_reasoned check (btrim(reason) <> ''),
    author text not null,
    chosen_at timestamptz not null default clock_timestamp(),
    constraint overrides_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint overrides_of_source unique (source, id)
);

create trigger overrides_stay before update or delete on lockstep.overrides
    for each row execute function lockstep.stays('overrides_stay');

-- `follows`: the batch behind whose end a chosen start goes on; `continuity`: what lies
-- between the two.
alter table lockstep.decisions
    add column follows bigint,
    add column continuity text,
    add column override bigint,
    add column gap_tables text[] not null default '{}',
    add constraint decisions_follows foreign key (source, follows) references lockstep.batches (source, id),
    add constraint decisions_override foreign key (source, override) references lockstep.overrides (source, id),
    add constraint decisions_continuity_known check (continuity in ('contiguous', 'overlap', 'gap')),
    add constraint decisions_continuity_told check ((follows is null) = (continuity is null)),
    add constraint decisions_gap_named check (
        (continuity is not distinct from 'gap') = (cardinality(gap_tables) > 0)
    );

-- `follows` is the predecessor, or what the start decision follows. `by_gtid`: the end may
-- be resumed by its GTID set.
alter table lockstep.batches
    add column follows bigint,
    add column by_gtid boolean not null default false;

alter table lockstep.batches disable trigger batches_move;
update lockstep.batches set follows = predecessor where predecessor is not null;
alter table lockstep.batches enable trigger batches_move;

-- Start decisions tell in their facts behind which batch they went on; older ones did not.
alter table lockstep.decisions disable trigger decisions_stay;
update lockstep.decisions d set facts = d.facts || jsonb_build_object('after', coalesce((
    select max(b.id) from lockstep.batches b
    where b.source = d.source and b.captured_at < d.decided_at
      and (b.abandoned_at is null or b.abandoned_at > d.decided_at)
), 0))
where d.kind = 'start' and d.facts ? 'tables' and not d.facts ? 'after';
alter table lockstep.decisions enable trigger decisions_stay;

alter table lockstep.batches
    add constraint batches_follows foreign key (source, follows) references lockstep.batches (source, id),
    add constraint batches_follows_predecessor check (
        predecessor is null or follows is not distinct from predecessor
    );

drop index lockstep.batches_one_successor;
drop index lockstep.batches_one_chain;
create unique index batches_one_successor on lockstep.batches (follows) where state <> 'abandoned';
-- Every live batch leads back to a live root, so one live root is one chain.
create unique index batches_one_chain on lockstep.batches (source)
    where follows is null and state <> 'abandoned';

create or replace function lockstep.batches_begin() returns trigger language plpgsql as $$
declare
    decision lockstep.decisions;
    earlier lockstep.batches;
begin
    if new.state <> 'capturing' then
        perform lockstep.refuse('batches_begin_capturing', 'a batch begins as capturing');
    end if;
    new.follows := new.predecessor;
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
        new.follows := coalesce(new.predecessor, decision.follows);
    end if;
    if new.follows is not null then
        select * into earlier from lockstep.batches b where b.id = new.follows;
        if earlier.state in ('capturing', 'abandoned') then
            perform lockstep.refuse('batches_predecessor_captured', 'the batch before is not captured');
        end if;
    end if;
    if new.base <> coalesce(earlier.base + earlier.changes, 0) then
        perform lockstep.refuse('batches_base_follows', 'a batch counts on from the one before');
    end if;
    return new;
end
$$;

create or replace function lockstep.batches_may_be_acknowledged(a_batch lockstep.batches) returns void language plpgsql as $$
begin
    if exists (select from lockstep.batches b where b.id = a_batch.follows and b.state <> 'acknowledged') then
        perform lockstep.refuse('batches_acknowledged_in_order', 'the batch before is not acknowledged');
    end if;
end
$$;

create or replace function lockstep.batches_may_be_abandoned(a_batch lockstep.batches) returns void language plpgsql as $$
begin
    if exists (select from lockstep.batches b where b.follows = a_batch.id and b.state <> 'abandoned') then
        perform lockstep.refuse('batches_abandoned_newest_first', 'a later batch goes on behind it');
    end if;
    if exists (select from lockstep.segments s
               join lockstep.writes w using (source, database, name)
               where s.batch = a_batch.id and a_batch.id between w.first_batch and w.last_batch) then
        perform lockstep.refuse('batches_abandoned_unmerged', 'a write to a mirror covers the batch');
    end if;
end
$$;

create function lockstep.batches_keep() returns trigger language plpgsql as $$
begin
    if new.follows is distinct from old.follows then
        perform lockstep.refuse('batches_start_stays', 'a batch keeps what it follows');
    end if;
    if old.state <> 'capturing' and new.by_gtid <> old.by_gtid then
        perform lockstep.refuse('batches_end_stays', 'a captured batch keeps its end');
    end if;
    return new;
end
$$;

create trigger batches_keep before update on lockstep.batches
    for each row execute function lockstep.batches_keep();

create view lockstep.gaps as
    select d.source, d.id as decision, b.id as batch, d.decided_at, d.author, d.reason, d.gap_tables,
           e.end_base as from_base, e.end_number as from_number, e.end_offset as from_offset,
           b.start_base as to_base, b.start_number as to_number, b.start_offset as to_offset
    from lockstep.decisions d
    join lockstep.batches b on b.start_decision = d.id and b.state <> 'abandoned'
    join lockstep.batches e on e.id = d.follows
    where d.continuity = 'gap';

-- A holder that gives no sign of life is taken over; its token fences it off.
alter table lockstep.sources add column beat_at timestamptz;
