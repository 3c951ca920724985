-- Mirrors that change hands: a table that got another name takes its folder along. The row
-- says at which Delta version, and what held before, for a batch that is abandoned.

alter table lockstep.table_states
    add column adopted bigint constraint table_states_adopted_counts check (adopted >= 0);

create table lockstep.handovers (
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    generation integer not null,
    mirror text not null,
    delta_version bigint,
    shows integer,
    before_generation integer not null,
    before_mirror text not null,
    before_shows integer,
    before_adopted bigint,
    constraint handovers_pk primary key (batch, database, name),
    constraint handovers_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint handovers_table foreign key (source, database, name) references lockstep.table_states,
    constraint handovers_shows foreign key (source, database, name, shows)
        references lockstep.table_versions,
    constraint handovers_whole check ((delta_version is null) = (shows is null)),
    constraint handovers_generation check (generation = before_generation + 1)
);

create function lockstep.handovers_alone() returns trigger language plpgsql as $$
begin
    if exists (select from lockstep.batches b where b.source = new.source and b.id <> new.batch
               and b.state in ('capturing', 'captured', 'merged')) then
        perform lockstep.refuse('handovers_alone', 'another batch of the source is unfinished');
    end if;
    return new;
end
$$;

create trigger handovers_alone before insert on lockstep.handovers
    for each row execute function lockstep.handovers_alone();
create trigger handovers_begin before insert on lockstep.handovers
    for each row execute function lockstep.while_capturing('handovers_while_capturing');
create trigger handovers_stay before update or delete on lockstep.handovers
    for each row execute function lockstep.stays('handovers_stay');

-- A batch may have ended a transaction and prepared another of the same XID: its own go
-- first, or both would be open for a moment.
-- Orders that the batch carried out are open again, and their tables stand where they
-- stood; what it dropped is there again; other tables that stopped in it stopped at its
-- start, for all that it read is read again; mirrors are again whose they were.
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

    update lockstep.table_states t set
        generation = h.before_generation, mirror = h.before_mirror,
        mirror_version = h.before_shows, adopted = h.before_adopted
    from lockstep.handovers h
    where h.batch = new.id and (t.source, t.database, t.name) = (h.source, h.database, h.name);

    update lockstep.table_states t set behind_batch = lockstep.behind(t.source, t.database, t.name, t.behind_batch)
    where t.source = new.source and t.behind_batch is not null;
    return null;
end
$$;
