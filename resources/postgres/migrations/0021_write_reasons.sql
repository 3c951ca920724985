-- Why a mirror was written the way it was: appended to, merged, written anew.

alter table lockstep.writes
    add column reason text,
    add constraint writes_reason_settled check (reason is null or settled_at is not null);
