-- What a run asked of the object store that the lake is in, by the lake's own client and by Spark's,
-- is kept with the batches that it acknowledges: each has what was asked since the one before. Where
-- the lake is a folder nothing is; where Spark's cannot be told, nothing of that.

alter table lockstep.batches
    add column own_requests bigint,
    add column spark_requests bigint,
    add constraint batches_requests_count check (own_requests >= 0 and spark_requests >= 0),
    add constraint batches_requests_told check (
        num_nonnulls(own_requests, spark_requests) = 0
        or state = 'acknowledged' and own_requests is not null);
