-- Changes that are kept no longer: upkeep notes the batch up to which they go, takes their files off
-- the changelogs, and deletes the files. Noted first, so that whoever asks for them is told, whatever
-- of it is done.

create table lockstep.forgotten (
    source text not null,
    through bigint not null,
    token bigint not null,
    noted_at timestamptz not null default clock_timestamp(),
    unlisted_at timestamptz,
    deleted_at timestamptz,
    constraint forgotten_pk primary key (source, through),
    constraint forgotten_batch foreign key (source, through)
        references lockstep.batches (source, id),
    constraint forgotten_lease foreign key (source, token)
        references lockstep.leases (source, token),
    constraint forgotten_moments check (deleted_at is null or unlisted_at is not null)
);

create function lockstep.forgotten_through(a_source text) returns bigint
language sql stable as $$
    select coalesce(max(f.through), 0) from lockstep.forgotten f where f.source = a_source
$$;

-- Who still needs changes of a source, and up to which batch they may go for all that.
create view lockstep.holding as
    select c.source, 'consumer' as kind, c.name as holder,
        coalesce(lockstep.consumed(c.id), 0) as through
    from lockstep.consumers c
    where c.dropped_at is null
    union all
    select b.source, 'batch', b.id::text, 0
    from lockstep.batches b
    where b.state in ('capturing', 'captured', 'merged')
    union all
    select t.source, 'table', t.database || '.' || t.name, case when exists (
            select from lockstep.table_events e
            where (e.source, e.database, e.name) = (t.source, t.database, t.name)
              and e.kind = 'rebuilt' and e.batch >= t.behind_batch)
        then 0 else t.behind_batch - 1 end
    from lockstep.table_states t
    where t.behind_batch is not null
    union all
    select l.source, 'table', l.database || '.' || l.name, coalesce(l.followed_batch - 1, 0)
    from lockstep.loads l
    where l.joined_batch is null and l.void is null and l.followed_batch is not null
    union all
    select w.source, 'table', w.database || '.' || w.name, w.first_batch - 1
    from lockstep.writes w
    where w.settled_at is null and w.given_up_at is null
    union all
    select r.source, 'replay', r.id::text, 0
    from lockstep.revisions r
    where r.state = 'open'
    union all
    select s.name, 'recovery', s.name, coalesce((
        select min(x.batch) - 1 from (
            select distinct f.batch from lockstep.source_files f
            where f.source = s.name and f.name = '_transactions'
            order by f.batch desc limit 8) x
        having count(*) = 8), 0)
    from lockstep.sources s;

create function lockstep.forgotten_begin() returns trigger language plpgsql as $$
begin
    if not exists (select from lockstep.batches b
                   where (b.source, b.id) = (new.source, new.through) and b.state = 'acknowledged') then
        perform lockstep.refuse('forgotten_acknowledged', 'the batch is not acknowledged');
    end if;
    if exists (select from lockstep.forgotten f where f.source = new.source
               and (f.through > new.through or f.unlisted_at is null)) then
        perform lockstep.refuse('forgotten_goes_on', 'what was forgotten before is still listed, or is more');
    end if;
    if exists (select from lockstep.holding h
               where h.source = new.source and h.through < new.through) then
        perform lockstep.refuse('forgotten_unneeded', 'somebody still needs changes up to that batch');
    end if;
    return new;
end
$$;

create function lockstep.forgotten_move() returns trigger language plpgsql as $$
begin
    if (new.source, new.through, new.token, new.noted_at)
        is distinct from (old.source, old.through, old.token, old.noted_at)
        or old.unlisted_at is not null and new.unlisted_at is distinct from old.unlisted_at
        or old.deleted_at is not null then
        perform lockstep.refuse('forgotten_move_on', 'what was done to forgotten changes stays done');
    end if;
    return new;
end
$$;

create trigger forgotten_begin before insert on lockstep.forgotten
    for each row execute function lockstep.forgotten_begin();
create trigger forgotten_move before update on lockstep.forgotten
    for each row execute function lockstep.forgotten_move();
create trigger forgotten_stay before delete on lockstep.forgotten
    for each row execute function lockstep.stays('forgotten_stay');

create function lockstep.consumers_begin_kept() returns trigger language plpgsql as $$
begin
    if coalesce(new.start_batch, 0) < lockstep.forgotten_through(new.source) then
        perform lockstep.refuse('consumers_start_kept', 'changes behind that batch are gone');
    end if;
    return new;
end
$$;

create trigger consumers_begin_kept before insert on lockstep.consumers
    for each row execute function lockstep.consumers_begin_kept();
