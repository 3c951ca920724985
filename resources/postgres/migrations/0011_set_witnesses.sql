-- By what a transaction that was read is known again in another server's log: of each source
-- of GTIDs that a batch read the last one, `ordinal` 0 for the last of all.

create table lockstep.set_witnesses (
    source text not null,
    batch bigint not null,
    ordinal integer not null constraint set_witnesses_ordinal_counts check (ordinal >= 0),
    origin text not null,
    gtid text not null,
    committed_at bigint not null constraint set_witnesses_moment_counts check (committed_at >= 0),
    digest text not null,
    constraint set_witnesses_pk primary key (batch, ordinal),
    constraint set_witnesses_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint set_witnesses_once unique (batch, origin),
    constraint set_witnesses_told check ((committed_at = 0) = (digest <> ''))
);
create index set_witnesses_newest on lockstep.set_witnesses (source, origin, batch);

-- What older ledgers kept: the last transaction of a batch and its moment, where that is a
-- commit time of the log (a time in whole seconds is no more than a header's), and where all
-- that the log had was read (behind another server's set the last one may have been left out).
insert into lockstep.set_witnesses
select b.source, b.id, 0, regexp_replace(b.witness_gtid, ':[0-9]+$', ''), b.witness_gtid,
       (extract(epoch from b.end_committed_at) * 1000000)::bigint, ''
from lockstep.batches b
where b.captured_at is not null and b.transactions > 0 and b.witness_gtid ~ '^[0-9a-f]{8}-.*:[0-9]+$'
  and (b.predecessor is not null or b.follows is null)
  and (extract(epoch from b.end_committed_at) * 1000000)::bigint % 1000000 <> 0;

create trigger set_witnesses_begin before insert on lockstep.set_witnesses
    for each row execute function lockstep.while_capturing('set_witnesses_while_capturing');
create trigger set_witnesses_stay before update or delete on lockstep.set_witnesses
    for each row execute function lockstep.stays('set_witnesses_stay');

-- Of a server that was not restarted nor reset since, nothing has to be shown.
alter table lockstep.batches
    add column server_started_at timestamptz,
    add column server_resets bigint,
    add constraint batches_life_whole check ((server_started_at is null) = (server_resets is null));

create or replace function lockstep.batches_keep() returns trigger language plpgsql as $$
begin
    if new.follows is distinct from old.follows then
        perform lockstep.refuse('batches_start_stays', 'a batch keeps what it follows');
    end if;
    if old.state <> 'capturing' and (new.by_gtid, new.server_started_at, new.server_resets)
            is distinct from (old.by_gtid, old.server_started_at, old.server_resets) then
        perform lockstep.refuse('batches_end_stays', 'a captured batch keeps its end');
    end if;
    return new;
end
$$;
