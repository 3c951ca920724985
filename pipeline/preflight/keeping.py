"""Rules about how long mirrors keep their versions, against what lockstep.toml promises.

Format: Delta documentation, "Table properties"; Delta refuses to read a version that is older
than `delta.deletedFileRetentionDuration`, also where its files are still there.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pipeline.keeping import Retention
from pipeline.preflight.evidence import KeptMirror, SourceEvidence
from pipeline.preflight.findings import CheckRule, Fault, Fine, Verdict, about
from pipeline.preflight.retention import spoken


def _kept(looked: SourceEvidence) -> Iterator[Verdict]:
    short = [mirror for mirror in looked.mirrors if not mirror.retention.holds(looked.keep)]
    for one in short:
        files, log = spoken(one.retention.files), spoken(one.retention.log)
        yield Fault(
            f"its mirror keeps replaced files for {files} and its log for {log}; `keep` under "
            f"[lake] promises its versions for {spoken(looked.keep)}",
            str(one.table),
            _statement(one, looked.keep),
        )
    if looked.mirrors and not short:
        yield Fine(f"every mirror keeps its versions for {spoken(looked.keep)}")


def _statement(mirror: KeptMirror, keep: timedelta) -> str:
    pairs = Retention.promising(keep).properties().items()
    told = ", ".join(f"'{name}' = '{value}'" for name, value in pairs)
    return (
        f"in Spark: ALTER TABLE delta.`{mirror.path}` SET TBLPROPERTIES ({told}); "
        "or a shorter `keep`"
    )


CHECK_RULES: Final = about(
    "the mirrors",
    CheckRule(
        "versions kept",
        "`delta.deletedFileRetentionDuration` and `delta.logRetentionDuration` of each mirror, "
        "against `keep` under [lake]",
        "warning",
        "versions that were promised cannot be read: VACUUM deletes their files, and Delta refuses "
        "them by their age",
        "in Spark: ALTER TABLE … SET TBLPROPERTIES with the longer times, as the line says",
        _kept,
    ),
)
