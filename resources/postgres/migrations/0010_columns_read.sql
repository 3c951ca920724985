-- A table's columns that were read from the source beside its key; null where all were.

alter table lockstep.snapshots add column columns text[];
