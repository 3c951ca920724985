"""How findings are put before people, and before programs."""

from __future__ import annotations

from lockstep.commands.check import finding_lines, level_counts
from lockstep.pipeline.check import Finding

OK = Finding("ok", "gtid_mode", "gtid_mode = ON", topic="the log")
SAME = Finding("ok", "session a", "no session differs now", topic="sessions")
WARNED = Finding("warning", "xa", "lacks XA_RECOVER_ADMIN", "GRANT …;", topic="the account")
REFUSED = Finding("refusal", "shop.t", "MEMORY: gone", "exclude it", topic="the tables")


def test_what_matters_comes_first() -> None:
    """Refusals, warnings, a line for each topic that is fine, the count."""
    assert list(finding_lines([OK, WARNED, SAME, REFUSED, SAME])) == [
        "  refusal  shop.t: MEMORY: gone",
        "           hint: exclude it",
        "  warning  xa: lacks XA_RECOVER_ADMIN",
        "           hint: GRANT …;",
        "  ok       the log: gtid_mode = ON",
        "  ok       sessions: no session differs now",
        "  1 refusal, 1 warning, 3 ok",
    ]


def test_tables_with_the_same_trouble_share_a_line() -> None:
    """Five are named, and five of their cures; `--json` has all."""
    found = [
        Finding("warning", f"shop.t{n}", "unread", f"GRANT {n};", topic="the account")
        for n in range(8)
    ]
    shown = list(finding_lines(found))
    assert shown[0] == "  warning  shop.t0, shop.t1, shop.t2, shop.t3, shop.t4 and 3 more: unread"
    assert shown[1:6] == [f"           hint: GRANT {n};" for n in range(5)]
    assert shown[6:] == [
        "                 and 3 more hints; --json has all of them",
        "  8 warnings",
    ]


def test_long_lines_of_what_is_fine_are_folded() -> None:
    """Nothing is wider than a terminal, and names stay whole."""
    many = [Finding("ok", "x", f"binlog_setting_{n} = ON", topic="the log") for n in range(20)]
    shown = list(finding_lines(many))
    assert max(map(len, shown)) <= 100
    assert all(f"binlog_setting_{n} = ON" in " ".join(shown) for n in (0, 7, 19))


def test_counting() -> None:
    """Nothing is said of levels without a finding."""
    assert level_counts([OK]) == "1 ok"
    assert level_counts([REFUSED, REFUSED, OK]) == "2 refusals, 1 ok"
