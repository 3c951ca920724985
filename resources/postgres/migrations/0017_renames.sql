-- Who gives a structure with a release may say which of its columns were called what before:
-- pairs of an old and a new name.

alter table lockstep.table_orders
    add column renames json,
    add constraint table_orders_renames_released
        check (renames is null or schema is not null and json_typeof(renames) = 'array');

create or replace function lockstep.table_orders_move() returns trigger language plpgsql as $$
begin
    if (new.id, new.source, new.token, new.database, new.name, new.kind, new.author, new.reason,
        new.ordered_at, new.schema::text, new.renames::text)
        is distinct from
       (old.id, old.source, old.token, old.database, old.name, old.kind, old.author, old.reason,
        old.ordered_at, old.schema::text, old.renames::text) then
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
