-- How an attempt ended that was refused, failed or found nothing to read: whose move it is and what
-- to type, or where the log ended. Until now the names of errors and the facts of decisions told.

alter table lockstep.decisions
    add column recovery text,
    add column hint text not null default '',
    add column head_base text,
    add column head_number bigint,
    add column head_offset bigint;

alter table lockstep.decisions disable trigger decisions_stay;

-- Every refusal was an operator's. What nobody knows by its name may be tried again.
update lockstep.decisions set
    hint = coalesce(facts ->> 'hint', ''),
    recovery = case
        when kind = 'refusal' then 'operator'
        when rule in (
            'ConfigurationError', 'NotYet', 'SecretMissing', 'AccessDenied', 'HostUnknown',
            'NothingMatches', 'SpanRefused', 'ConditionRefused', 'PastRefused', 'ConsumerUnknown',
            'JavaMissing', 'SetupIncomplete', 'TlsRefused') then 'configuration'
        when rule in (
            'OperatorNeeded', 'StartNotChosen', 'StartUnreachable', 'NotAnEventBoundary',
            'MomentOutOfRange', 'EndNotReached', 'HistoryRewritten', 'HistoryUnproven',
            'SourceChanged', 'SourceDiverged', 'StartBehindCursor', 'PreparedBeforeStart',
            'TransactionsWithoutGtid', 'SegmentsLost', 'NoRuleApplies', 'ServerSettings',
            'PrivilegeMissing', 'LogStops', 'UnsupportedStatement', 'UnsupportedEvent',
            'PreparedElsewhere', 'SourceRefused', 'DamagedEvent', 'TransactionsMissing',
            'ForeignCommit', 'TableQuarantined', 'LedgerRefused', 'ConsumerRefused', 'LedgerNewer',
            'PositionPurged', 'SchemaUnknownAt', 'VersionSetUnknown', 'VersionGone') then 'operator'
        else 'retry'
    end
where kind in ('refusal', 'failure');

-- Written as in binlog.000012:4567; what is not stays unknown.
update lockstep.decisions d set
    head_base = found.head[1],
    head_number = found.head[2]::bigint,
    head_offset = found.head[3]::bigint
from (
    select id, regexp_match(facts ->> 'head', '^(.+)\.([0-9]{6,10}):([0-9]{1,18})$') as head
    from lockstep.decisions where kind = 'idle'
) found
where found.id = d.id and found.head is not null;

alter table lockstep.decisions enable trigger decisions_stay;

alter table lockstep.decisions
    add constraint decisions_recovery_known check (recovery in ('configuration', 'retry', 'operator')),
    add constraint decisions_recovery_told check (
        (kind in ('refusal', 'failure')) = (recovery is not null)
    ),
    add constraint decisions_hint_told check (hint = '' or recovery is not null),
    add constraint decisions_head_told check (
        num_nonnulls(head_base, head_number, head_offset) = 0
        or kind = 'idle' and num_nonnulls(head_base, head_number, head_offset) = 3
    );
