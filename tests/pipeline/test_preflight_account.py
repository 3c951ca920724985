"""What the lines of SHOW GRANTS give, in both servers' spelling."""

from __future__ import annotations

import pytest

from lockstep.pipeline.check.account import has_globally
from lockstep.pipeline.values.survey import has_privilege, read_grants
from lockstep.pipeline.values.table import TableName
from tests.pipeline.preflight_made import looked, surveyed

ORDERS = TableName("shop", "orders")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["GRANT SELECT ON *.* TO `a`@`%`"], True),
        (["GRANT ALL PRIVILEGES ON *.* TO `a`@`%` WITH GRANT OPTION"], True),
        (["GRANT INSERT, SELECT ON `shop`.* TO `a`@`%`"], True),
        (["GRANT SELECT ON `shop`.`orders` TO `a`@`%`"], True),
        (['GRANT SELECT ON "shop"."orders" TO "a"@"%"'], True),
        (["GRANT SELECT ON `sh%`.* TO `a`@`%`"], True),
        (["GRANT SELECT ON `s_op`.* TO `a`@`%`"], True),
        ([r"GRANT SELECT ON `s\_op`.* TO `a`@`%`"], False),
        (["GRANT SELECT ON `s_op`.`orders` TO `a`@`%`"], False),
        (["GRANT SELECT ON `shop`.`items` TO `a`@`%`"], False),
        (["GRANT INSERT ON *.* TO `a`@`%`"], False),
        (["GRANT SELECT (`id`, `at`), INSERT ON `shop`.`orders` TO `a`@`%`"], False),
        (["GRANT USAGE ON *.* TO `a`@`%`"], False),
        (["GRANT `select`@`%` TO `a`@`%`"], False),
        (["GRANT EXECUTE ON PROCEDURE `shop`.`orders` TO `a`@`%`"], False),
        (["GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `shop`.* FROM `a`@`%`"], False),
        (["GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `crm`.* FROM `a`@`%`"], True),
        (["GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `sh% FROM `.* FROM `a`@`%`"], True),
        (["GRANT SELECT (`a ON b`), INSERT ON `shop`.`orders` TO `a`@`%`"], False),
        (["GRANT PROXY ON ``@`` TO `a`@`%`"], False),
    ],
)
def test_select(lines: list[str], expected: bool) -> None:
    """A grant covers a table by name, by database pattern, or by everything."""
    assert has_privilege(read_grants(tuple(lines)), "SELECT", ORDERS) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("GRANT SELECT, REPLICATION SLAVE ON *.* TO `a`@`%`", True),
        ("GRANT ALL PRIVILEGES ON *.* TO `a`@`%`", True),
        ("GRANT REPLICATION SLAVE ADMIN ON *.* TO `a`@`%`", False),
        ("GRANT PROXY ON ``@`` TO `root`@`localhost` WITH GRANT OPTION", False),
    ],
)
def test_a_global_privilege(line: str, expected: bool) -> None:
    """Names are compared whole."""
    assert has_globally(looked(surveyed(grants=(line,))), "REPLICATION SLAVE") is expected


def test_names_that_look_like_words() -> None:
    """A database may be called by the words that come after its name."""
    lines = ("GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `a FROM b`.* FROM `a`@`%`")
    assert not has_privilege(read_grants(lines), "SELECT", TableName("a FROM b", "t"))
    given = ("GRANT SELECT ON `a TO b`.* TO `a`@`%`",)
    assert has_privilege(read_grants(given), "SELECT", TableName("a TO b", "t"))
