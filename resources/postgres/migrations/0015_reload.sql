-- A pause fits every state: a paused table keeps what it is owed. A reload has a table's mirror
-- written anew: from its changelog, which leaves a table event, or from the source. A mirror that
-- is lost gets a successor in another folder; the changelog's generations are not touched by it.

alter table lockstep.table_states
    add column mirror_generation integer not null default 1,
    add constraint table_states_mirror_generation_counts check (mirror_generation > 0),
    drop constraint table_states_stopped,
    add constraint table_states_stopped
        check (num_nonnulls(stopped_batch, stopped_base, stopped_number, stopped_offset) =
               case when condition = 'active' then 0
                    when condition in ('quarantined', 'paused') and stopped_batch is null then 0
                    else 4 end);

alter table lockstep.table_orders
    add column aside_condition text,
    drop constraint table_orders_kind_known,
    add constraint table_orders_kind_known
        check (kind in ('pause', 'resume', 'release', 'reload'));

alter table lockstep.table_events
    drop constraint table_events_kind_known,
    add constraint table_events_kind_known
        check (kind in ('created', 'changed', 'truncated', 'dropped', 'reread', 'rebuilt')),
    drop constraint table_events_reread_explained,
    add constraint table_events_reread_explained
        check (kind not in ('reread', 'rebuilt') or reason is not null);

create or replace function lockstep.table_orders_begin() returns trigger language plpgsql as $$
declare
    found text;
begin
    select t.condition into found from lockstep.table_states t
    where (t.source, t.database, t.name) = (new.source, new.database, new.name);
    if new.done_batch is not null then
        perform lockstep.refuse('table_orders_begin_open', 'an order begins as open');
    end if;
    if new.kind = 'resume' and found <> 'paused' then
        perform lockstep.refuse('table_orders_resume_paused', 'the table is not paused');
    end if;
    if new.kind = 'release' and found <> 'quarantined' then
        perform lockstep.refuse('table_orders_release_quarantined', 'the table is not quarantined');
    end if;
    if new.kind = 'reload' and found = 'dropped' then
        perform lockstep.refuse('table_orders_reload_there', 'the table was dropped');
    end if;
    return new;
end
$$;

create or replace function lockstep.batches_abandoned() returns trigger language plpgsql as $$
begin
    update lockstep.prepared set abandoned = true, ended_by = null, committed = null
    where batch = new.id;
    update lockstep.prepared set ended_by = null, committed = null
    where source = new.source and ended_by = new.id;

    update lockstep.table_states t set
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
    where o.done_batch = new.id
      and (t.source, t.database, t.name) = (o.source, o.database, o.name);
    update lockstep.table_orders set
        done_batch = null, stopped_batch = null, stopped_base = null, stopped_number = null,
        stopped_offset = null, aside_reason = null, aside_hint = null, aside_position = null,
        aside_condition = null, aside_remedy = null
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
