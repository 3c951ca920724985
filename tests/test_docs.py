"""Pages that repeat what the code says, say it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from lockstep.pipeline.binlog.rows.table_map import _BYTE_STRINGS, _TYPES_BY_CODE
from lockstep.pipeline.mirror.strategy import FEW
from lockstep.pipeline.schema.types import FAMILIES
from lockstep.pipeline.values.retries import STEP
from lockstep.pipeline.values.row_groups import GROUP_BYTES, GROUP_ROWS
from lockstep.resources.postgres.leases import SILENT_SECONDS

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("pipeline", "resources", "assets", "lockstep", "demo", "benchmarks", "tests")


def test_every_test_that_a_page_names_is_there() -> None:
    """Whoever reads a name finds the proof."""
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/canal.md").read_text()))
    there = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert len(named) > 20
    assert named - there == set()


def test_every_type_of_a_table_map_has_a_family() -> None:
    """A type code has a name, and the name a family, by which it is decoded."""
    named = {*(name for name, _ in _TYPES_BY_CODE.values()), *_BYTE_STRINGS.values()}
    assert named == set(FAMILIES)


def test_every_type_is_on_the_page_to_look_things_up() -> None:
    """With what it is in Delta."""
    section = (ROOT / "docs/reference.md").read_text().partition("\n## Types\n")[2]
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", section.partition("\n## ")[0], re.MULTILINE)
    assert set(FAMILIES) - set(re.findall(r"\w+", " ".join(rows).lower())) == set()


INSTRUCTIONS = (
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs/architecture.md",
    ROOT / "tests/README.md",
)
GUIDES = (
    *INSTRUCTIONS,
    *sorted((ROOT / "docs/decisions").glob("*.md")),
)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_every_file_a_guide_names_is_there(page: Path) -> None:
    """In backticks from the repository's root, or a bare name, of a file beside another one; in
    links from the page. `*` stands for some."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    quoted = re.findall(r"`([\w*.]+/[\w/*.-]*)`", text)
    linked = re.findall(r"\]\((?!https:)([^)#]+)", text)
    assert quoted
    missing = [name for name in quoted if not list(ROOT.glob(name.rstrip("/")))]
    missing += [name for name in linked if not (page.parent / name).exists()]
    beside = re.findall(r"`(\w+\.(?:py|sql))`", text)
    missing += [name for name in beside if "NNNN" not in name and not files_named(name)]
    assert missing == []


FILE = r"`([\w./-]+\.(?:py|sql|java|lock|toml|md))`"
NAME = r"`((?:\w+\.)*[A-Za-z_]\w*)(?:\(\))?`"


def told_of_files(text: str) -> list[tuple[str, str, list[str]]]:
    """What a text says is in files, each as the words, the name and the files: names right before
    "in `FILE`", and those in a parenthesis right behind a file that begins with one, and may name
    more files. Tests are looked for elsewhere."""
    before = re.compile(rf"((?:{NAME}(?:,| and|, and)? )+)in\s{FILE}")
    behind = re.compile(rf"{FILE}\s\((?={NAME})([^()]*(?:\(\)[^()]*)*)\)")
    text = re.sub(r"\s+", " ", text)
    found = [(m[0], m[1], [m[m.lastindex or 0]]) for m in before.finditer(text)]
    found += [(m[0], m[3], [m[1], *re.findall(FILE, m[3])]) for m in behind.finditer(text)]
    return [
        (words, name, files)
        for words, names, files in found
        for name in re.findall(NAME, re.sub(FILE, "", names))
        if not name.startswith("test_")
    ]


def files_named(name: str) -> list[Path]:
    """From the repository's root; a bare name is a file beside another one."""
    if "/" in name:
        return [ROOT / name]
    return [file for folder in SOURCES for file in (ROOT / folder).rglob(name)]


def words_of(files: Iterable[Path]) -> set[str]:
    return set(re.findall(r"\w+", "\n".join(file.read_text() for file in files)))


def test_what_a_text_says_of_files_is_understood() -> None:
    """One name and several, before a file and behind it; a word that names no file says nothing."""
    text = (
        "`A` and `b.C` in `x.py`; `p/y.sql` (`d`, `e()` beside `z.py`), `f` elsewhere; `g` in `h`; "
        "`p/y.sql` (against `i`)"
    )
    assert [(name, files) for _, name, files in told_of_files(text)] == [
        ("A", ["x.py"]),
        ("b.C", ["x.py"]),
        ("d", ["p/y.sql", "z.py"]),
        ("e", ["p/y.sql", "z.py"]),
    ]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_what_a_guide_says_is_in_a_file_is_in_it(page: Path) -> None:
    """A class, a function, a table, a constant: whoever opens the file finds the word."""
    missing = [
        words
        for words, name, files in told_of_files(page.read_text())
        if name.split(".")[-1] not in words_of(one for file in files for one in files_named(file))
    ]
    assert missing == []


@pytest.mark.parametrize("page", INSTRUCTIONS, ids=lambda page: page.name)
def test_every_name_in_instructions_is_known(page: Path, known: set[str]) -> None:
    """A name of code, which has a capital, an underscore or a dot, stands somewhere in the code."""
    text = re.sub(FILE, "", page.read_text())
    named = {name for name in re.findall(NAME, text) if re.search(r"[A-Z_.]", name)}
    assert sorted(name for name in named if not known.issuperset(name.split("."))) == []


@pytest.fixture(scope="module")
def known() -> set[str]:
    """Every word of the code and of what stands beside it, names of files among them."""
    suffixes = (".py", ".sql", ".java", ".toml", ".jinja")
    files = [file for folder in SOURCES for file in (ROOT / folder).rglob("*.*")]
    files = [file for file in files if file.suffix in suffixes] + [*ROOT.glob("*.toml")]
    files += (ROOT / "docs/deploy").iterdir()
    parts = {part for file in files for part in (*file.relative_to(ROOT).parts, file.stem)}
    return words_of(files) | {word for part in parts for word in part.split(".")}


READ = (
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "tests").glob("*.md")),
    *sorted((ROOT / "benchmarks").glob("*.md")),
)
"""Every page that a person reads."""


@pytest.mark.parametrize("page", READ, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_heading(page: Path) -> None:
    """A link to a page that is gone, or to a chapter that has another name now, leads nowhere."""
    targets = re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text())
    assert [target for target in targets if not leads(page, target)] == []


@pytest.mark.parametrize("page", READ, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_a_page_names_is_there(page: Path) -> None:
    """From the repository's root, or as the end of such a path."""
    named = set(re.findall(r"`((?:[a-z]+/)*[a-z_]+\.py)`", page.read_text()))
    there = [f"/{file}" for folder in SOURCES for file in (ROOT / folder).rglob("*.py")]
    there += [f"/{file}" for file in (ROOT / "docs/deploy").glob("*.py")]
    missing = {name for name in named if not any(file.endswith(f"/{name}") for file in there)}
    assert missing == set()


def test_every_page_that_the_product_names_is_there() -> None:
    """In hints, comments and the example of a configuration."""
    files = [ROOT / "lockstep.toml"]
    files += [file for folder in SOURCES for file in (ROOT / folder).rglob("*.py")]
    named = {
        (str(file.relative_to(ROOT)), target)
        for file in files
        for target in re.findall(r"\bdocs/[\w/-]+\.md(?:#[\w-]+)?", file.read_text())
    }
    assert len(named) > 20
    assert [one for one in named if not leads(ROOT / "README.md", one[1])] == []


def leads(page: Path, target: str) -> bool:
    """Whether a link of the page finds its file, and there the heading that it names."""
    name, _, anchor = target.partition("#")
    file = page.parent / name if name else page
    return file.exists() and (not anchor or anchor in headings(file))


def headings(page: Path) -> set[str]:
    """As GitHub writes them in links: lower case, spaces as dashes, no punctuation."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in found}


def test_every_room_of_a_run_is_told() -> None:
    """Whoever reads how a run works has met each module and each wing of it."""
    page = (ROOT / "docs/architecture.md").read_text()
    rooms = {room.stem for room in (ROOT / "pipeline/run").glob("[!_]*")}
    assert rooms - set(re.findall(r"`(\w+)/?`", page)) == set()


def test_the_numbers_in_the_answers_are_those_of_the_code() -> None:
    """Whoever reads an answer need not open the file."""
    page = (ROOT / "docs/architecture.md").read_text()
    assert f"{GROUP_ROWS:,}, or fewer at {GROUP_BYTES >> 20} MiB" in page
    assert f"up to {FEW.rows:,} rows and {FEW.bytes >> 20} MiB" in page
    assert f"`SILENT_SECONDS` ({SILENT_SECONDS:g})" in page
    assert (STEP.most_tries, "a whole step of a run: three times" in page) == (3, True)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_every_test_a_guide_names_is_there(page: Path) -> None:
    """Whoever leaves a step out knows which test will say so."""
    there = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", page.read_text()))
    assert [name for name in named if f"def {name}(" not in there] == []


def test_every_decision_is_in_the_index() -> None:
    """A page that nobody links to is not read."""
    index = (ROOT / "docs/README.md").read_text()
    pages = [page.name for page in sorted((ROOT / "docs/decisions").glob("*.md"))]
    assert pages
    assert [name for name in pages if f"(decisions/{name})" not in index] == []


def test_the_tests_of_every_page_and_folder_are_named() -> None:
    guide = (ROOT / "tests/README.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert [page for page in sorted(pages) if f"(../docs/{page})" not in guide] == []
    folders = {test.parent.name for test in (ROOT / "tests").glob("*/test_*.py")}
    assert [folder for folder in sorted(folders) if f"`tests/{folder}`" not in guide] == []
