"""Key paths are found at the lines where a person wrote them."""

from __future__ import annotations

from lockstep.resources.config.load import key_lines, line_of

TEXT = '''# a comment with = and [brackets]
[lake]
path = "la#ke"                 # line 3
[spark]
"spark.master" = "local[*]"    # line 5
spark.ui.enabled = "false"

[[sources]]
name = "a"
tables = [                     # line 10
  "x = [y]",
  "b.*",  # ]
]
note = """
host = "not a key"
""""
user = \'u\'
[sources.table."shop.users"]   # line 18
columns.exclude = ["x"]

[[sources]]                    # line 21
name = "b"
'''


def test_every_key_has_its_line() -> None:
    """Headers, quoted and dotted keys, numbered tables; nothing inside strings or lists,
    also if a string ends with a quote of its own."""
    lines = key_lines(TEXT)
    wanted = {
        ("lake",): 2,
        ("lake", "path"): 3,
        ("spark",): 4,
        ("spark", "spark.master"): 5,
        ("spark", "spark", "ui", "enabled"): 6,
        ("sources",): 8,
        ("sources", 0): 8,
        ("sources", 0, "name"): 9,
        ("sources", 0, "tables"): 10,
        ("sources", 0, "note"): 14,
        ("sources", 0, "user"): 17,
        ("sources", 0, "table", "shop.users"): 18,
        ("sources", 0, "table", "shop.users", "columns", "exclude"): 19,
        ("sources", 1): 21,
        ("sources", 1, "name"): 22,
    }
    assert wanted == {path: lines.get(path) for path in wanted}
    assert ("sources", 0, "host") not in lines


def test_a_part_without_a_line_takes_its_parents() -> None:
    """An element of a list is found where the list begins; an unknown path nowhere."""
    lines = key_lines(TEXT)
    assert line_of(lines, ("sources", 0, "tables", 1)) == 10
    assert line_of(lines, ("nowhere",)) is None


def test_a_line_ends_where_toml_says() -> None:
    """Other characters at which Python splits lines may stand in a comment."""
    assert key_lines("# a\u2028b\x85c\n[lake]\r\npath = 'x'\n")["lake", "path"] == 3
