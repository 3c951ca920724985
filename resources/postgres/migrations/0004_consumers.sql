-- Named consumers of a source's changelog, and what each was given: ranges of acknowledged
-- batches, one behind the other. A consumer's cursor is derived from them.

create table lockstep.consumers (
    id bigint generated always as identity constraint consumers_pk primary key,
    source text not null constraint consumers_source references lockstep.sources,
    name text not null constraint consumers_named check (btrim(name) <> ''),
    start_batch bigint,
    made_at timestamptz not null default clock_timestamp(),
    dropped_at timestamptz,
    dropped_by text,
    dropped_because text,
    constraint consumers_of_source unique (source, id),
    constraint consumers_start foreign key (source, start_batch) references lockstep.batches (source, id),
    constraint consumers_drop_explained check (
        num_nonnulls(dropped_at, dropped_by, dropped_because) in (0, 3) and btrim(dropped_because) <> ''
    )
);

create unique index consumers_name_once on lockstep.consumers (source, name) where dropped_at is null;

create function lockstep.consumers_begin() returns trigger language plpgsql as $$
begin
    if exists (select from lockstep.batches b where (b.source, b.id) = (new.source, new.start_batch)
               and b.state <> 'acknowledged') then
        perform lockstep.refuse('consumers_start_acknowledged', 'the batch is not acknowledged');
    end if;
    return new;
end
$$;

create function lockstep.consumers_move() returns trigger language plpgsql as $$
begin
    if (new.id, new.source, new.name, new.start_batch, new.made_at)
        is distinct from (old.id, old.source, old.name, old.start_batch, old.made_at) then
        perform lockstep.refuse('consumers_stay', 'a consumer stays as it was made');
    end if;
    if old.dropped_at is not null then
        perform lockstep.refuse('consumers_dropped_once', 'the consumer is dropped');
    end if;
    return new;
end
$$;

create trigger consumers_begin before insert on lockstep.consumers
    for each row execute function lockstep.consumers_begin();
create trigger consumers_move before update on lockstep.consumers
    for each row execute function lockstep.consumers_move();
create trigger consumers_stay before delete on lockstep.consumers
    for each row execute function lockstep.stays('consumers_stay');

-- deliveries ------------------------------------------------------------------------

create table lockstep.deliveries (
    id bigint generated always as identity constraint deliveries_pk primary key,
    source text not null,
    consumer bigint not null,
    first_batch bigint not null,
    last_batch bigint not null,
    state text not null default 'out',
    delivered_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    constraint deliveries_consumer foreign key (source, consumer) references lockstep.consumers (source, id),
    constraint deliveries_first_batch foreign key (source, first_batch) references lockstep.batches (source, id),
    constraint deliveries_last_batch foreign key (source, last_batch) references lockstep.batches (source, id),
    constraint deliveries_batches_ascend check (first_batch <= last_batch),
    constraint deliveries_state_known check (state in ('out', 'acknowledged', 'rolled back')),
    constraint deliveries_moments check ((ended_at is null) = (state = 'out'))
);

create index deliveries_out on lockstep.deliveries (consumer, id) where state = 'out';
create index deliveries_given on lockstep.deliveries (consumer, last_batch) where state <> 'rolled back';
create index deliveries_done on lockstep.deliveries (consumer, last_batch) where state = 'acknowledged';

-- The newest batch a consumer is done with; null before the first.
create function lockstep.consumed(a_consumer bigint) returns bigint language sql stable as $$
    select coalesce(
        (select max(d.last_batch) from lockstep.deliveries d
         where d.consumer = a_consumer and d.state = 'acknowledged'),
        (select c.start_batch from lockstep.consumers c where c.id = a_consumer))
$$;

-- The newest batch a consumer has or is done with; 0 before the first.
create function lockstep.given(a_consumer bigint) returns bigint language sql stable as $$
    select coalesce(
        (select max(d.last_batch) from lockstep.deliveries d
         where d.consumer = a_consumer and d.state <> 'rolled back'),
        (select c.start_batch from lockstep.consumers c where c.id = a_consumer), 0)
$$;

-- One step of a consumer at a time: whoever comes second sees what the first did.
create function lockstep.consumer_steps(a_consumer bigint) returns void language plpgsql as $$
declare
    owner lockstep.consumers;
begin
    select * into owner from lockstep.consumers c where c.id = a_consumer for no key update;
    if owner.dropped_at is not null then
        perform lockstep.refuse('deliveries_of_live_consumers', 'the consumer is dropped');
    end if;
end
$$;

create function lockstep.deliveries_begin() returns trigger language plpgsql as $$
begin
    perform lockstep.consumer_steps(new.consumer);
    if new.state <> 'out' then
        perform lockstep.refuse('deliveries_begin_out', 'a delivery begins as out');
    end if;
    if exists (select from lockstep.batches b where b.source = new.source and b.id <= new.last_batch
               and (b.state in ('capturing', 'captured', 'merged')
                    or b.id in (new.first_batch, new.last_batch) and b.state <> 'acknowledged')) then
        perform lockstep.refuse('deliveries_of_acknowledged_batches', 'a batch is not acknowledged');
    end if;
    if new.first_batch is distinct from (
        select min(b.id) from lockstep.batches b
        where b.source = new.source and b.state = 'acknowledged' and b.id > lockstep.given(new.consumer)) then
        perform lockstep.refuse('deliveries_go_on', 'it does not go on where the last one ended');
    end if;
    return new;
end
$$;

create function lockstep.deliveries_move() returns trigger language plpgsql as $$
begin
    perform lockstep.consumer_steps(old.consumer);
    if (new.id, new.source, new.consumer, new.first_batch, new.last_batch, new.delivered_at)
        is distinct from
       (old.id, old.source, old.consumer, old.first_batch, old.last_batch, old.delivered_at) then
        perform lockstep.refuse('deliveries_stay', 'a delivery keeps its batches');
    end if;
    if old.state = 'acknowledged' then
        perform lockstep.refuse('deliveries_acknowledged_once', 'the delivery is acknowledged');
    end if;
    if old.state = 'rolled back' then
        perform lockstep.refuse('deliveries_rolled_back_once', 'the delivery is rolled back');
    end if;
    if new.state = 'acknowledged' and exists (
        select from lockstep.deliveries d
        where d.consumer = new.consumer and d.state = 'out' and d.id < new.id) then
        perform lockstep.refuse('deliveries_acknowledged_in_order', 'an older delivery is out');
    end if;
    return new;
end
$$;

create function lockstep.deliveries_rolled_back() returns trigger language plpgsql as $$
begin
    if exists (select from lockstep.deliveries d
               where d.consumer = new.consumer and d.state = 'out' and d.id > new.id) then
        perform lockstep.refuse('deliveries_rolled_back_newest_first', 'a newer delivery is out');
    end if;
    return null;
end
$$;

create trigger deliveries_begin before insert on lockstep.deliveries
    for each row execute function lockstep.deliveries_begin();
create trigger deliveries_move before update on lockstep.deliveries
    for each row execute function lockstep.deliveries_move();
create trigger deliveries_rolled_back after update on lockstep.deliveries
    for each row when (new.state = 'rolled back') execute function lockstep.deliveries_rolled_back();
create trigger deliveries_stay before delete on lockstep.deliveries
    for each row execute function lockstep.stays('deliveries_stay');
