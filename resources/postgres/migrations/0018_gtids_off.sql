-- When a run last found GTIDs not on: a set that was recorded before that is not resumed by.
-- Until now the facts of every decision since were searched for it.

alter table lockstep.sources add column gtids_off_at timestamptz;
update lockstep.sources s set gtids_off_at = (
    select max(d.decided_at) from lockstep.decisions d
    where d.source = s.name and d.facts ? 'gtid_mode' and d.facts->>'gtid_mode' <> 'ON'
);
