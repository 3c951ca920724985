-- The tables whose structures are still to be compared with the server's are those that the newest
-- decision of the kind 'structures' names, as [database, name]: none if all were compared.

alter table lockstep.decisions add column structures jsonb;

alter table lockstep.decisions add constraint decisions_structures_told check (
    (kind = 'structures') = (structures is not null)
);

create index decisions_on_structures on lockstep.decisions (source, id) where kind = 'structures';
