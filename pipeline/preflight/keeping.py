"""Rules about how long mirrors keep their versions, compared with `keep` in lockstep.toml.

Format: Delta documentation, "Table properties". Delta refuses to read a version that is older than
`delta.deletedFileRetentionDuration`, even if its files still exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pipeline.keeping import Retention
from pipeline.preflight.evidence import KeptMirror, SourceEvidence
from pipeline.preflight.findings import CheckRule, Fault, Fine, Verdict, about
from pipeline.preflight.retention import spoken


def _kept(evidence: SourceEvidence) -> Iterator[Verdict]:
    short = [mirror for mirror in evidence.mirrors if not mirror.retention.holds(evidence.keep)]
    for mirror in short:
        files, log = spoken(mirror.retention.files), spoken(mirror.retention.log)
        yield Fault(
            f"its mirror keeps replaced files for {files} and its log for {log}; `keep` under "
            f"[lake] promises its versions for {spoken(evidence.keep)}",
            str(mirror.table),
            _statement(mirror, evidence.keep),
        )
    if evidence.mirrors and not short:
        yield Fine(f"every mirror keeps its versions for {spoken(evidence.keep)}")


def _statement(mirror: KeptMirror, keep: timedelta) -> str:
    pairs = Retention.promising(keep).properties().items()
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in pairs)
    return (
        f"in Spark: ALTER TABLE delta.`{mirror.path}` SET TBLPROPERTIES ({properties}); "
        "or a shorter `keep`"
    )


CHECK_RULES: Final = about(
    "the mirrors",
    CheckRule(
        "versions kept",
        "`delta.deletedFileRetentionDuration` and `delta.logRetentionDuration` of each mirror, "
        "against `keep` under [lake]",
        "warning",
        "promised versions cannot be read: VACUUM deletes their files, and Delta refuses them "
        "because of their age",
        "in Spark: ALTER TABLE … SET TBLPROPERTIES with the longer times, as the line says",
        _kept,
    ),
)
