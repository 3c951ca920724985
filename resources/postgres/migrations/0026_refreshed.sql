-- Some rows of a table may be read from the source again, by a condition: they are in its changelog,
-- and an event says who had them read, and why.

alter table lockstep.table_events
    drop constraint table_events_kind_known,
    add constraint table_events_kind_known
        check (kind in ('created', 'changed', 'truncated', 'dropped', 'reread', 'refreshed',
                        'rebuilt')),
    drop constraint table_events_reread_explained,
    add constraint table_events_reread_explained
        check (kind not in ('reread', 'refreshed', 'rebuilt') or reason is not null);
