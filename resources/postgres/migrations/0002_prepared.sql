-- Prepared XA transactions: what a batch read of them waits, perhaps many batches long,
-- for the batch that reads their XA COMMIT or XA ROLLBACK.

-- XIDs are reused, so a row is a prepared transaction, not an XID. MySQL manual, "XA
-- Transaction SQL Statements": gtrid and bqual have up to 64 bytes each.
create table lockstep.prepared (
    id bigint generated always as identity constraint prepared_pk primary key,
    source text not null,
    batch bigint not null,
    format_id bigint not null,
    gtrid bytea not null,
    bqual bytea not null,
    position text not null,
    path text,
    images bigint,
    size bigint,
    sha256 text constraint prepared_file_digest check (sha256 ~ '^[0-9a-f]{64}$'),
    ended_by bigint,
    committed boolean,
    abandoned boolean not null default false,
    constraint prepared_once unique (batch, format_id, gtrid, bqual),
    constraint prepared_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint prepared_ended_by foreign key (source, ended_by) references lockstep.batches (source, id),
    constraint prepared_xid_fits check (octet_length(gtrid) <= 64 and octet_length(bqual) <= 64),
    constraint prepared_file_whole check (num_nonnulls(path, images, size, sha256) in (0, 4)),
    constraint prepared_file_counts check (images >= 0 and size >= 0),
    constraint prepared_end_whole check ((ended_by is null) = (committed is null)),
    constraint prepared_end_not_before check (ended_by >= batch),
    constraint prepared_end_live check (ended_by is null or not abandoned)
);

create unique index prepared_open_once on lockstep.prepared (source, format_id, gtrid, bqual)
    where ended_by is null and not abandoned;

create function lockstep.prepared_begin() returns trigger language plpgsql as $$
begin
    if new.ended_by is not null or new.abandoned then
        perform lockstep.refuse('prepared_begin_open', 'a prepared transaction begins as open');
    end if;
    if not exists (select from lockstep.batches b where b.id = new.batch and b.state = 'capturing') then
        perform lockstep.refuse('prepared_while_capturing',
            'prepared transactions are recorded while their batch is capturing');
    end if;
    return new;
end
$$;

create function lockstep.prepared_move() returns trigger language plpgsql as $$
begin
    if (new.id, new.source, new.batch, new.format_id, new.gtrid, new.bqual, new.position,
        new.path, new.images, new.size, new.sha256)
        is distinct from
       (old.id, old.source, old.batch, old.format_id, old.gtrid, old.bqual, old.position,
        old.path, old.images, old.size, old.sha256) then
        perform lockstep.refuse('prepared_stay', 'a prepared transaction stays as it was recorded');
    end if;
    if new.abandoned <> old.abandoned and not (new.abandoned and exists (
        select from lockstep.batches b where b.id = new.batch and b.state = 'abandoned')) then
        perform lockstep.refuse('prepared_abandoned_with_batch', 'its batch is not abandoned');
    end if;
    if old.ended_by is not null and (new.ended_by is not null or not exists (
        select from lockstep.batches b where b.id = old.ended_by and b.state = 'abandoned')) then
        perform lockstep.refuse('prepared_ended_once', 'a live batch ended it');
    end if;
    if old.ended_by is null and new.ended_by is not null and not exists (
        select from lockstep.batches b where b.id = new.ended_by and b.state = 'capturing') then
        perform lockstep.refuse('prepared_ended_while_capturing', 'the batch that ends it is not capturing');
    end if;
    return new;
end
$$;

create trigger prepared_begin before insert on lockstep.prepared
    for each row execute function lockstep.prepared_begin();
create trigger prepared_move before update on lockstep.prepared
    for each row execute function lockstep.prepared_move();
create trigger prepared_stay before delete on lockstep.prepared
    for each row execute function lockstep.stays('prepared_stay');

-- A batch may have ended a transaction and prepared another of the same XID: its own go
-- first, or both would be open for a moment.
create function lockstep.batches_abandoned() returns trigger language plpgsql as $$
begin
    update lockstep.prepared set abandoned = true, ended_by = null, committed = null
    where batch = new.id;
    update lockstep.prepared set ended_by = null, committed = null
    where source = new.source and ended_by = new.id;
    return null;
end
$$;

create trigger batches_abandoned after update on lockstep.batches
    for each row when (new.state = 'abandoned') execute function lockstep.batches_abandoned();
