-- The patterns that batches were captured with: a row where they are others than those of the
-- live batch before, from that batch on. One that catches tables up has none.

create table lockstep.capture_scopes (
    source text not null,
    batch bigint not null constraint capture_scopes_pk primary key,
    include text[] not null,
    exclude text[] not null,
    constraint capture_scopes_batch foreign key (source, batch) references lockstep.batches (source, id)
);
create index capture_scopes_of_source on lockstep.capture_scopes (source, batch);

-- Until now the patterns stood in the decision that came last before a batch.
with told as (
    select b.source, b.id, array(select jsonb_array_elements_text(d.facts->'tables'->'include')) as include,
           array(select jsonb_array_elements_text(d.facts->'tables'->'exclude')) as exclude
    from lockstep.batches b
    left join lockstep.decisions of on of.id = b.start_decision
    cross join lateral (
        select * from lockstep.decisions d
        where d.source = b.source and d.kind = 'start' and d.facts ? 'tables'
          and d.decided_at <= b.created_at and (of.id is null or d.id <= of.id)
        order by d.id desc limit 1
    ) d
    where b.state not in ('capturing', 'abandoned') and of.rule is distinct from 'catching-up'
), neighbours as (
    select *, lag((include, exclude)) over (partition by source order by id) as before from told
)
insert into lockstep.capture_scopes (source, batch, include, exclude)
select source, id, include, exclude from neighbours
where before is distinct from (include, exclude);

create trigger capture_scopes_begin before insert on lockstep.capture_scopes
    for each row execute function lockstep.while_capturing('capture_scopes_while_capturing');
create trigger capture_scopes_stay before update or delete on lockstep.capture_scopes
    for each row execute function lockstep.stays('capture_scopes_stay');
