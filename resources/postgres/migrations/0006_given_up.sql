-- Writes given up: begun, refused, and nothing of them is in the lake. The table was set
-- aside; when it comes back another write merges these batches, together with what came since.

alter table lockstep.writes
    add column given_up_at timestamptz,
    add constraint writes_given_up_or_settled check (settled_at is null or given_up_at is null);

drop index lockstep.writes_one_open;
create unique index writes_one_open on lockstep.writes (source, database, name)
    where settled_at is null and given_up_at is null;

create or replace function lockstep.writes_move() returns trigger language plpgsql as $$
begin
    if (new.id, new.source, new.token, new.database, new.name, new.app_id, new.txn_version,
        new.first_batch, new.last_batch, new.step, new.intended_at)
        is distinct from
       (old.id, old.source, old.token, old.database, old.name, old.app_id, old.txn_version,
        old.first_batch, old.last_batch, old.step, old.intended_at) then
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
