"""What commands answer with `--json`, over one history, as files: `tests/cases/answers`.

Each answer is compared as a whole, so a field that goes, comes or changes its value is seen. Where
that is meant, `RENEW_ANSWERS=1` in the environment of this test writes the files again.
"""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path
from typing import Final

from demo.mysql_search import MySql
from tests.e2e.recorded import ACCOUNT, DATABASE, Recording, record
from tests.e2e.warm import REPOSITORY, WarmProcess
from tests.fix_mysql import MySqlStand

FILES: Final = REPOSITORY / "tests" / "cases" / "answers"


def test_every_command_answers_as_recorded(
    mysql_program: MySql, mysql_newest: MySqlStand, tmp_path: Path, warm: WarmProcess
) -> None:
    """Some ninety commands, with those that refuse; nothing is recorded of a server of yours, whose
    settings `check` would tell."""
    recording = Recording(mysql_newest, tmp_path, warm)
    mysql_newest.begin_file()
    with mysql_newest.metadata("MINIMAL"):
        try:
            record(recording)
        finally:
            mysql_newest.execute(
                f"drop database if exists {DATABASE}", f"drop user if exists {ACCOUNT}"
            )
    answers = {
        name: json.dumps(recording.marks.masked(answer), indent=1, ensure_ascii=False) + "\n"
        for name, answer in recording.answers.items()
    }
    if os.environ.get("RENEW_ANSWERS"):
        renew(answers)
    kept = {path.stem: path.read_text(encoding="utf-8") for path in FILES.glob("*.json")}
    changed = [
        *(f"{name}: has no file" for name in answers.keys() - kept.keys()),
        *(f"{name}: nobody asks this any more" for name in kept.keys() - answers.keys()),
        *(
            difference(name, kept[name], answer)
            for name, answer in answers.items()
            if kept.get(name, answer) != answer
        ),
    ]
    assert not changed, "\n".join(changed)


def difference(name: str, kept: str, answer: str) -> str:
    """Lines that are otherwise, with what stands around them."""
    texts = (kept.splitlines(), answer.splitlines())
    return "\n".join(difflib.unified_diff(*texts, f"{name}.json", f"{name}, now", lineterm=""))


def renew(answers: dict[str, str]) -> None:
    """The files as the answers are now."""
    FILES.mkdir(exist_ok=True)
    for path in FILES.glob("*.json"):
        path.unlink()
    for name, answer in answers.items():
        (FILES / f"{name}.json").write_text(answer, encoding="utf-8")
