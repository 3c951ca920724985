-- A ledger that was made from its lake keeps which batches of the ledgers before it counted then.
-- Another ledger may have given the same numbers to batches of its own since.

create table lockstep.inherited (
    source text not null constraint inherited_source references lockstep.sources,
    above bigint not null,
    through bigint not null,
    constraint inherited_pk primary key (source, above),
    constraint inherited_span check (above >= 0 and above < through)
);

-- What was void then is told by the lake's claim, as before.
insert into lockstep.inherited (source, above, through)
select source, 0, (facts ->> 'batch')::bigint
from (
    select distinct on (source) source, facts
    from lockstep.decisions where kind = 'start' and rule = 'recovered'
    order by source, id desc
) newest
where (facts ->> 'batch')::bigint > 0;
