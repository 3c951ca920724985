-- Upkeep makes commits that show the rows of an earlier version in other files: whoever reads the
-- source as of a batch reads the newest version with these rows, whose files stay longest.

create table lockstep.upkept (
    source text not null,
    mirror text not null,
    delta_version bigint not null,
    shows bigint not null,
    token bigint not null,
    noted_at timestamptz not null default clock_timestamp(),
    constraint upkept_pk primary key (source, mirror, delta_version),
    constraint upkept_lease foreign key (source, token)
        references lockstep.leases (source, token),
    constraint upkept_shows_earlier check (shows >= 0 and shows < delta_version)
);

create index upkept_of_version on lockstep.upkept (source, mirror, shows, delta_version);

create function lockstep.upkept_begin() returns trigger language plpgsql as $$
begin
    if not exists (
        select from lockstep.writes w
        join lockstep.table_states t using (source, database, name)
        where w.source = new.source and coalesce(w.mirror, t.mirror) = new.mirror
          and w.delta_version = new.shows) then
        perform lockstep.refuse('upkept_of_a_write', 'no settled write made the version that it shows');
    end if;
    if exists (
        select from lockstep.writes w
        join lockstep.table_states t using (source, database, name)
        where w.source = new.source and coalesce(w.mirror, t.mirror) = new.mirror
          and w.delta_version > new.shows and w.delta_version <= new.delta_version) then
        perform lockstep.refuse('upkept_unchanged', 'the mirror was written to between the two');
    end if;
    return new;
end
$$;

create trigger upkept_begin before insert on lockstep.upkept
    for each row execute function lockstep.upkept_begin();
create trigger upkept_stay before update or delete on lockstep.upkept
    for each row execute function lockstep.stays('upkept_stay');

create function lockstep.newest_same(of_source text, of_mirror text, version bigint) returns bigint
language sql stable as $$
    select coalesce((
        select max(u.delta_version) from lockstep.upkept u
        where (u.source, u.mirror, u.shows) = (of_source, of_mirror, version)
    ), version)
$$;
