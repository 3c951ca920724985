-- What happened to a table is kept, and its state is what came of it. Until now a state was
-- overwritten, and what an abandoned batch had changed was put back from copies that orders and
-- handovers kept of it.

create table lockstep.table_life (
    id bigint generated always as identity,
    source text not null,
    database text not null,
    name text not null,
    event text not null,
    life text not null,
    batch bigint,
    token bigint,
    told jsonb not null,
    at timestamptz not null default clock_timestamp(),
    constraint table_life_pk primary key (id),
    constraint table_life_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint table_life_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint table_life_known check (life in ('active', 'quarantined', 'paused', 'dropped')),
    constraint table_life_event_known check (event in (
        'recorded', 'followed', 'dropped', 'quarantined', 'paused', 'reloaded', 'rejoined',
        'mirror written', 'mirror handed over', 'mirror replaced', 'mirror removed',
        'lake restarted', 'batch abandoned')),
    constraint table_life_told check (event = 'recorded' or token is not null)
);

create index table_life_of_table on lockstep.table_life (source, database, name, id);
create index table_life_of_batch on lockstep.table_life (batch) where batch is not null;

create function lockstep.table_life_begin() returns trigger language plpgsql as $$
begin
    if new.batch is not null and not exists (
            select from lockstep.batches b where b.id = new.batch and b.state = 'capturing') then
        perform lockstep.refuse('table_life_while_capturing', 'the batch is not capturing');
    end if;
    return new;
end
$$;

create trigger table_life_stays before update or delete on lockstep.table_life
    for each row execute function lockstep.stays('table_life_stays');

-- The states as they are. Batches that are captured and not merged may yet be abandoned: what
-- each of them changed is a step of its own, from the state before it.
create temporary table state (like lockstep.table_states) on commit drop;
insert into state select * from lockstep.table_states;
create temporary table step (
    turn bigint, source text, database text, name text, batch bigint, told jsonb
) on commit drop;

do $$
declare
    a_batch lockstep.batches;
begin
    for a_batch in
        select * from lockstep.batches where state = 'captured' order by id desc
    loop
        create temporary table after on commit drop as select * from state;
        update state t set
            condition = case when t.condition in ('quarantined', 'paused') then t.condition
                             else coalesce(o.aside_condition,
                                  case o.kind when 'resume' then 'paused' else 'quarantined' end) end,
            remedy = case when t.condition in ('quarantined', 'paused') then t.remedy
                          else o.aside_remedy end,
            reason = coalesce(t.reason, o.aside_reason),
            hint = coalesce(t.hint, o.aside_hint),
            position = coalesce(t.position, o.aside_position),
            stopped_batch = o.stopped_batch, stopped_base = o.stopped_base,
            stopped_number = o.stopped_number, stopped_offset = o.stopped_offset
        from lockstep.table_orders o
        where o.done_batch = a_batch.id
          and (t.source, t.database, t.name) = (o.source, o.database, o.name);
        update state set
            condition = 'active', stopped_batch = null, stopped_base = null, stopped_number = null,
            stopped_offset = null
        where source = a_batch.source and stopped_batch = a_batch.id and condition = 'dropped';
        update state t set
            generation = h.before_generation, mirror = h.before_mirror,
            mirror_version = h.before_shows, adopted = h.before_adopted
        from lockstep.handovers h
        where h.batch = a_batch.id
          and (t.source, t.database, t.name) = (h.source, h.database, h.name);
        insert into step
        select a_batch.id, a.source, a.database, a.name, a_batch.id, to_jsonb(a) from after a
        join state s using (source, database, name)
        where a is distinct from s;
        drop table after;
    end loop;
end
$$;
insert into step select 0, source, database, name, null, to_jsonb(s) from state s;

insert into lockstep.table_life (source, database, name, event, life, batch, told)
select source, database, name, 'recorded', told->>'condition', batch,
       told - array['source', 'database', 'name', 'behind_batch']
from step order by source, database, name, turn;

create trigger table_life_begin before insert on lockstep.table_life
    for each row execute function lockstep.table_life_begin();

-- A state changes with an event, and with nothing else; only what it is behind by is counted
-- from batches and writes.
alter table lockstep.table_states add column event bigint
    constraint table_states_event references lockstep.table_life (id);
update lockstep.table_states t set event = (
    select max(e.id) from lockstep.table_life e
    where (e.source, e.database, e.name) = (t.source, t.database, t.name));

create function lockstep.table_states_move() returns trigger language plpgsql as $$
begin
    if new.event is null or tg_op = 'UPDATE' and new.event = old.event and (
        new.condition, new.generation, new.mirror, new.changelog, new.reason, new.hint,
        new.position, new.mirror_version, new.changelog_generation, new.stopped_batch,
        new.stopped_base, new.stopped_number, new.stopped_offset, new.adopted, new.remedy,
        new.mirror_generation) is distinct from (
        old.condition, old.generation, old.mirror, old.changelog, old.reason, old.hint,
        old.position, old.mirror_version, old.changelog_generation, old.stopped_batch,
        old.stopped_base, old.stopped_number, old.stopped_offset, old.adopted, old.remedy,
        old.mirror_generation) then
        perform lockstep.refuse('table_states_told', 'a state changes with an event');
    end if;
    return null;
end
$$;

create trigger table_states_move after insert or update on lockstep.table_states
    for each row execute function lockstep.table_states_move();

drop trigger writes_settled on lockstep.writes;
drop function lockstep.writes_settled();

alter table lockstep.table_orders
    drop column stopped_batch, drop column stopped_base, drop column stopped_number,
    drop column stopped_offset, drop column aside_reason, drop column aside_hint,
    drop column aside_position, drop column aside_condition, drop column aside_remedy;
alter table lockstep.handovers drop column before_shows, drop column before_adopted;

-- A batch may have ended a transaction and prepared another of the same XID: its own go
-- first, or both would be open for a moment. Orders that it carried out are open again. What
-- becomes of tables their events tell, without those of the batch.
create or replace function lockstep.batches_abandoned() returns trigger language plpgsql as $$
begin
    update lockstep.prepared set abandoned = true, ended_by = null, committed = null
    where batch = new.id;
    update lockstep.prepared set ended_by = null, committed = null
    where source = new.source and ended_by = new.id;
    update lockstep.table_orders set done_batch = null where done_batch = new.id;
    return null;
end
$$;
