-- A version of a database also tells its triggers and views, which statements in the log reach
-- other tables through; null where nobody knows them. A batch counts the statements that stand in
-- the log instead of rows and were passed, because they change no captured table.
alter table lockstep.database_versions
    add column code json,
    add constraint database_versions_code check (code is null or charset is not null);

alter table lockstep.batches
    add column passed_statements bigint not null default 0
        constraint batches_passed_statements_counts check (passed_statements >= 0);
