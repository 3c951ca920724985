-- What a batch adds to its source's own tables in the lake: their files.

create table lockstep.source_files (
    source text not null,
    batch bigint not null,
    name text not null constraint source_files_name_known check (name in ('_ddl', '_transactions')),
    ordinal integer not null,
    path text not null,
    images bigint not null,
    size bigint not null,
    sha256 text not null constraint source_files_digest check (sha256 ~ '^[0-9a-f]{64}$'),
    constraint source_files_pk primary key (batch, name, ordinal),
    constraint source_files_batch foreign key (source, batch) references lockstep.batches (source, id),
    constraint source_files_once unique (batch, name, path),
    constraint source_files_counts check (ordinal >= 0 and images >= 0 and size >= 0)
);

create trigger source_files_begin before insert on lockstep.source_files
    for each row execute function lockstep.while_capturing('source_files_while_capturing');
create trigger source_files_stay before update or delete on lockstep.source_files
    for each row execute function lockstep.stays('source_files_stay');
