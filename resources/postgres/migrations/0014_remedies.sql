-- What a table that is set aside is owed is a value; the hint only puts it in words. Until now
-- the hint's words were what decided, and the position of a write that was refused.

create function lockstep.remedy_of(hint text, place text) returns text language sql immutable as $$
    select case
        when hint = 'the next run reads it from the source' then 'resnapshot'
        when hint = 'the next run reads its new columns from the source' then 'backfill'
        when hint like '%; a release reads it from the source' then 'released-resnapshot'
        when place like 'batch %' then 'rewrite-mirror'
        else 'catch-up'
    end
$$;

alter table lockstep.table_states add column remedy text;
update lockstep.table_states set remedy = lockstep.remedy_of(hint, position)
where condition = 'quarantined';
alter table lockstep.table_states
    add constraint table_states_remedy_known check (
        remedy in ('catch-up', 'rewrite-mirror', 'released-resnapshot', 'resnapshot', 'backfill')),
    add constraint table_states_remedy_told check (
        case condition when 'quarantined' then remedy is not null when 'paused' then true
        else remedy is null end);

alter table lockstep.table_orders add column aside_remedy text;
alter table lockstep.table_orders disable trigger table_orders_move;
update lockstep.table_orders set aside_remedy = lockstep.remedy_of(aside_hint, aside_position)
where kind = 'release' and aside_hint is not null;
alter table lockstep.table_orders enable trigger table_orders_move;

drop function lockstep.remedy_of(text, text);

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
        remedy = coalesce(t.remedy, o.aside_remedy),
        stopped_batch = o.stopped_batch, stopped_base = o.stopped_base,
        stopped_number = o.stopped_number, stopped_offset = o.stopped_offset
    from lockstep.table_orders o
    where o.done_batch = new.id
      and (t.source, t.database, t.name) = (o.source, o.database, o.name);
    update lockstep.table_orders set
        done_batch = null, stopped_batch = null, stopped_base = null, stopped_number = null,
        stopped_offset = null, aside_reason = null, aside_hint = null, aside_position = null,
        aside_remedy = null
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
