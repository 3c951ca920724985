-- Replays: files of segments that stand in the place of others, and writes that heal mirrors.

create table lockstep.revisions (
    id bigint generated always as identity constraint revisions_pk primary key,
    source text not null,
    token bigint not null,
    state text not null default 'open',
    begun_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    constraint revisions_lease foreign key (source, token) references lockstep.leases (source, token),
    constraint revisions_state_known check (state in ('open', 'settled', 'given up')),
    constraint revisions_moments check ((ended_at is null) = (state = 'open'))
);

create unique index revisions_one_open on lockstep.revisions (source) where state = 'open';

create table lockstep.revised_files (
    revision bigint not null constraint revised_files_revision references lockstep.revisions,
    segment bigint not null constraint revised_files_segment references lockstep.segments,
    ordinal integer not null,
    path text not null,
    images bigint not null,
    size bigint not null,
    sha256 text not null constraint revised_files_digest check (sha256 ~ '^[0-9a-f]{64}$'),
    constraint revised_files_pk primary key (revision, segment, ordinal),
    constraint revised_files_once unique (revision, segment, path),
    constraint revised_files_counts check (ordinal >= 0 and images >= 0 and size >= 0)
);

create index revised_files_of_segment on lockstep.revised_files (segment);

create function lockstep.revisions_move() returns trigger language plpgsql as $$
begin
    if (new.id, new.source, new.token, new.begun_at) is distinct from
       (old.id, old.source, old.token, old.begun_at) or old.state <> 'open' then
        perform lockstep.refuse('revisions_end_once', 'a revision is settled or given up, once');
    end if;
    return new;
end
$$;

create trigger revisions_move before update on lockstep.revisions
    for each row execute function lockstep.revisions_move();
create trigger revisions_stay before delete on lockstep.revisions
    for each row execute function lockstep.stays('revisions_stay');

create function lockstep.revised_files_begin() returns trigger language plpgsql as $$
begin
    if not exists (
        select from lockstep.revisions r
        join lockstep.segments s on s.id = new.segment and s.source = r.source
        join lockstep.batches b on b.id = s.batch and b.state = 'acknowledged'
        where r.id = new.revision and r.state = 'open') then
        perform lockstep.refuse('revised_files_of_acknowledged',
            'an open revision has files of acknowledged batches of its source');
    end if;
    return new;
end
$$;

create trigger revised_files_begin before insert on lockstep.revised_files
    for each row execute function lockstep.revised_files_begin();
create trigger revised_files_stay before update or delete on lockstep.revised_files
    for each row execute function lockstep.stays('revised_files_stay');

-- A segment's files today: those of its newest settled revision, else those it was captured with.
create view lockstep.current_files as
    with newest as (
        select f.segment, max(f.revision) as revision
        from lockstep.revised_files f
        join lockstep.revisions r on r.id = f.revision and r.state = 'settled'
        group by f.segment
    )
    select f.segment, f.ordinal, f.path, f.images, f.size, f.sha256
    from lockstep.segment_files f
    where not exists (select from newest n where n.segment = f.segment)
    union all
    select f.segment, f.ordinal, f.path, f.images, f.size, f.sha256
    from lockstep.revised_files f
    join newest n on n.segment = f.segment and n.revision = f.revision;

-- A replay writes what acknowledged batches brought, once more, as often as somebody wants it.
create or replace function lockstep.writes_begin() returns trigger language plpgsql as $$
declare
    the_table lockstep.table_states;
begin
    select * into the_table from lockstep.table_states t
    where (t.source, t.database, t.name) = (new.source, new.database, new.name);
    if new.settled_at is not null then
        perform lockstep.refuse('writes_intent_first', 'a write is an intent before it is settled');
    end if;
    if new.step <> 'replay' and exists (
               select from lockstep.batches b where b.source = new.source
               and b.id in (new.first_batch, new.last_batch) and b.state <> 'captured'
               and (b.state not in ('merged', 'acknowledged')
                    or b.id < the_table.behind_batch or the_table.behind_batch is null)) then
        perform lockstep.refuse('writes_of_captured_batches', 'only captured batches are merged');
    end if;
    if new.step = 'replay' and exists (
               select from lockstep.batches b where b.source = new.source
               and b.id in (new.first_batch, new.last_batch) and b.state <> 'acknowledged') then
        perform lockstep.refuse('writes_replay_acknowledged', 'only acknowledged batches are replayed');
    end if;
    if the_table.condition not in ('active', 'dropped') then
        perform lockstep.refuse('writes_of_active_tables', 'the table is set aside');
    end if;
    if new.step <> 'replay' and exists (
               select from lockstep.writes w
               where (w.source, w.database, w.name, w.app_id, w.step)
                   = (new.source, new.database, new.name, new.app_id, new.step)
               and w.settled_at is not null
               and w.first_batch <= new.last_batch and new.first_batch <= w.last_batch) then
        perform lockstep.refuse('writes_never_overlap', 'a settled write of this table covers these batches');
    end if;
    return new;
end
$$;
