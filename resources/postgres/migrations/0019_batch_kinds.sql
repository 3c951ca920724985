-- What a batch is: one that reads on, or one that reads again, for tables that had stopped, what
-- others had read. Until now the name of its decision's rule told.

alter table lockstep.batches
    add column kind text not null default 'ordinary',
    add constraint batches_kind_known check (kind in ('ordinary', 'catching-up')),
    add constraint batches_catch_up_decided check (kind <> 'catching-up' or start_decision is not null);

alter table lockstep.batches disable trigger batches_move;
update lockstep.batches b set kind = 'catching-up'
from lockstep.decisions d
where d.id = b.start_decision and d.rule = 'catching-up';
alter table lockstep.batches enable trigger batches_move;

create or replace function lockstep.batches_keep() returns trigger language plpgsql as $$
begin
    if (new.follows, new.kind) is distinct from (old.follows, old.kind) then
        perform lockstep.refuse('batches_start_stays', 'a batch keeps what it follows and what it is');
    end if;
    if old.state <> 'capturing' and (new.by_gtid, new.server_started_at, new.server_resets)
            is distinct from (old.by_gtid, old.server_started_at, old.server_resets) then
        perform lockstep.refuse('batches_end_stays', 'a captured batch keeps its end');
    end if;
    return new;
end
$$;
