-- Which process may have statements at a server of Spark's: one that died leaves them there, and
-- whoever takes its source over ends them. One whose merges are over is not here any more.

create table lockstep.spark_clients (
    source text not null,
    client uuid not null,
    token bigint not null,
    constraint spark_clients_pk primary key (source, client),
    constraint spark_clients_lease foreign key (source, token)
        references lockstep.leases (source, token)
);
