-- A table whose place nobody recorded, by a ledger of before, is released all the same: it is
-- read from the source.

create or replace function lockstep.table_orders_begin() returns trigger language plpgsql as $$
declare
    found text;
begin
    select t.condition into found from lockstep.table_states t
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
    return new;
end
$$;
