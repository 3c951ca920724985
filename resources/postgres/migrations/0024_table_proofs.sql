-- What comparisons of tables found: the newest, of all rows and of samples, and what the newest
-- that found no difference proved, and at which place of the log.

create table lockstep.table_proofs (
    source text not null constraint table_proofs_source references lockstep.sources,
    database text not null,
    name text not null,
    whole boolean not null,
    compared_at timestamptz not null default clock_timestamp(),
    differing bigint not null,
    proven_at timestamptz,
    proof text,
    rows bigint,
    at_base text,
    at_number bigint,
    at_offset bigint,
    gtid_set text,
    constraint table_proofs_pk primary key (source, database, name, whole),
    constraint table_proofs_differing_counts check (differing >= 0),
    constraint table_proofs_rows_count check (rows >= 0),
    constraint table_proofs_known
        check (proof in ('exact', 'prefix', 'rows', 'sample')),
    constraint table_proofs_proven_whole check (
        num_nonnulls(proven_at, proof, rows, at_base, at_number, at_offset, gtid_set) in (0, 7)),
    constraint table_proofs_differing_or_proven check (differing > 0 or (proven_at is not null and proven_at = compared_at))
);
