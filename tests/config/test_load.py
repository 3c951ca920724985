"""lockstep.toml is judged whole, and every mistake is told with its line and its cure."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from lockstep.pipeline.schema.treatments import Conversion, Hash, Mask
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.shape.shape import ShapeRules
from lockstep.pipeline.values.errors import ConfigurationError, LockstepError, NotYet, SecretMissing
from lockstep.pipeline.values.places import AtCoordinates
from lockstep.pipeline.values.policies import LakePolicies, StartPolicies
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import TableName, TablePatterns
from lockstep.resources.config import Settings, load, load_settings
from lockstep.resources.config.load import parse_settings
from lockstep.resources.config.model import ConfigFile
from lockstep.resources.config.sources import TableSection

SOURCE = """\
[[sources]]
name = "shop"
host = "127.0.0.1"
user = "lockstep"
password = "env:SHOP_PASSWORD"
tables = ["shop.*"]
"""


def parsed(text: str, folder: Path = Path("/project")) -> Settings:
    return parse_settings(text, folder / "lockstep.toml")


def refused(text: str) -> LockstepError:
    with pytest.raises(LockstepError) as caught:
        parsed(text)
    return caught.value


CARTS = SOURCE + '[[sources.table]]\nmatch = "shop.carts"\n'

UNITY = '[catalog]\nkind = "unity"\nuri = "http://127.0.0.1:8080"\nname = "lake"\n'

MISTAKES = {
    "a catalog's literal token": (
        UNITY + 'token = "hunter2"\n' + SOURCE,
        "lockstep.toml: line 5: a password in the file is refused; write env:NAME or file:PATH.",
    ),
    "a token in the clear": (
        UNITY.replace("127.0.0.1", "catalog.example.com") + 'token = "env:TOKEN"\n' + SOURCE,
        "lockstep.toml: line 1: http:// would send the token unencrypted; write https://.",
    ),
    "a catalog without its address": (
        '[catalog]\nkind = "hive"\n' + SOURCE,
        "lockstep.toml: line 1: kind = 'hive' needs uri.",
    ),
    "an address of another kind": (
        UNITY.replace("http://", "thrift://") + SOURCE,
        "lockstep.toml: line 1: uri is not an address such as http://catalog.example.com.",
    ),
    "a catalog's password in its address": (
        UNITY.replace("127.0.0.1", ":hunter2@127.0.0.1") + SOURCE,
        "lockstep.toml: line 1: uri is not an address such as http://catalog.example.com.",
    ),
    "a catalog's port that is none": (
        UNITY.replace(":8080", ":808O") + SOURCE,
        "lockstep.toml: line 1: uri is not an address such as http://catalog.example.com.",
    ),
    "a page's port that is none": (
        '[dagster]\nwebserver = "http://127.0.0.1:808O"\n' + SOURCE,
        "lockstep.toml: line 2: not an address such as http://127.0.0.1:3000.",
    ),
    "tables of two databases under one name": (
        UNITY + 'schemas = "all"\n' + SOURCE,
        "lockstep.toml: line 5: 'all' has no {database} in it: tables of two databases may have "
        "one name.",
    ),
    "an unknown top-level key names the nearest": (
        "lakes = 1\n" + SOURCE,
        "lockstep.toml: line 1: unknown key 'lakes'; did you mean 'lake'?",
    ),
    "an unknown key of a source names the nearest": (
        SOURCE + 'tabels = ["a.b"]\n',
        "lockstep.toml: line 7: unknown key 'tabels'; did you mean 'tables'?",
    ),
    "a key in the wrong table": (
        SOURCE + 'max_bytes = "1GiB"\n',
        "lockstep.toml: line 7: unknown key 'max_bytes' here; it belongs under [sources.bounds].",
    ),
    "a key of two other tables": (
        "[lake]\nmax_seconds = 60\n" + SOURCE,
        "lockstep.toml: line 2: unknown key 'max_seconds' here; it belongs under [sources.bounds] "
        "or [sources.snapshot].",
    ),
    "an unknown key of a table names the nearest of its own": (
        SOURCE + '[sources.trigger]\nbites = "1GiB"\n',
        "lockstep.toml: line 8: unknown key 'bites'; did you mean 'bytes'?",
    ),
    "a block for tables without a pattern": (
        SOURCE + '[[sources.table]]\ndeletes = "soft"\n',
        "lockstep.toml: line 7: the source's table lacks 'match'.",
    ),
    "a block for tables that says nothing": (
        SOURCE + '[[sources.table]]\nmatch = "shop.carts"\n',
        "lockstep.toml: line 7: it sets nothing for its tables; add a setting besides match.",
    ),
    "a block for tables with what is of a source": (
        SOURCE + '[[sources.table]]\nmatch = "shop.carts"\non_position_lost = "resnapshot"\n',
        "lockstep.toml: line 9: 'on_position_lost' applies to a source as a whole, not to some of "
        "its tables; it belongs under [[sources]].",
    ),
    "a block for tables with a word that nobody knows": (
        SOURCE + '[[sources.table]]\nmatch = "shop.carts"\ntruncates = "keep"\n',
        "lockstep.toml: line 9: 'truncates' must be 'delete' or 'ignore'.",
    ),
    "no column to hash": (
        CARTS + "hash_columns = []\n",
        "lockstep.toml: line 9: 'hash_columns' must not be empty.",
    ),
    "a hash of another kind": (
        CARTS + 'hash_columns = { email = "md5" }\n',
        "lockstep.toml: line 9: 'email' must be 'exact' or 'lower'.",
    ),
    "a mask that is none": (
        CARTS + 'mask_columns = { phone = "last" }\n',
        "lockstep.toml: line 9: 'last' is no mask: write first:N, last:N, year or null.",
    ),
    "a mask of no characters": (
        CARTS + 'mask_columns = { phone = "last:0" }\n',
        "lockstep.toml: line 9: 'last:0' is no mask: write first:N, last:N, year or null.",
    ),
    "a type that is none": (
        CARTS + 'types = { active = "integer" }\n',
        "lockstep.toml: line 9: 'active' must be 'boolean', 'uuid', 'microseconds' or 'string'.",
    ),
    "columns without a pattern": (
        CARTS + 'exclude_columns = ""\n',
        "lockstep.toml: line 9: 'exclude_columns' must not be empty.",
    ),
    "columns that are no patterns": (
        CARTS + "include_columns = [1]\n",
        "lockstep.toml: line 9: 'include_columns' must be a text in quotes.",
    ),
    "a condition of another language": (
        CARTS + 'rows = "length(name) > 3"\n',
        "lockstep.toml: line 9: 'LENGTH(name) > 3' is not part of a row condition: write "
        "columns compared with literals, IN, BETWEEN, LIKE and IS NULL, joined by AND, OR "
        "and NOT.",
    ),
    "a condition that is cut off": (
        CARTS + 'rows = "country = "\n',
        "lockstep.toml: line 9: 'country = ' cannot be parsed as a condition of SQL.",
    ),
    "a condition of two columns": (
        CARTS + 'rows = "total > paid"\n',
        "lockstep.toml: line 9: 'paid' is not part of a row condition: write columns "
        "compared with literals, IN, BETWEEN, LIKE and IS NULL, joined by AND, OR and NOT.",
    ),
    "a condition with a question": (
        CARTS + 'rows = "id in (select 1)"\n',
        "lockstep.toml: line 9: 'id IN (SELECT 1)' is not part of a row condition: write "
        "columns compared with literals, IN, BETWEEN, LIKE and IS NULL, joined by AND, OR "
        "and NOT.",
    ),
    "a shape of a source": (
        SOURCE + 'hash_columns = ["email"]\n',
        "lockstep.toml: line 7: unknown key 'hash_columns' here; it belongs under "
        "[[sources.table]].",
    ),
    "a literal privacy key": (
        '[privacy]\nkey = "hunter2"\n' + SOURCE,
        "lockstep.toml: line 2: a password in the file is refused; write env:NAME or file:PATH.",
    ),
    "a literal password": (
        SOURCE.replace("env:SHOP_PASSWORD", "hunter2"),
        "lockstep.toml: line 5: a password in the file is refused; write env:NAME or file:PATH.",
    ),
    "a literal under a telling [spark] key": (
        '[spark]\n"spark.hadoop.fs.s3a.secret.key" = "hunter2"\n' + SOURCE,
        "lockstep.toml: line 2: a literal value of 'spark.hadoop.fs.s3a.secret.key' is refused "
        "(its name suggests a secret); write env:NAME or file:PATH.",
    ),
    "a literal that gives access to a lineage backend": (
        '[lineage.transport]\ntype = "http"\nauth = { apiKey = "hunter2" }\n' + SOURCE,
        "lockstep.toml: line 1: a literal value of 'apiKey' is refused (it may be a secret); "
        "write env:NAME or file:PATH.",
    ),
    "a lineage transport of no kind": (
        '[lineage]\ntransport = { url = "http://127.0.0.1" }\n' + SOURCE,
        'lockstep.toml: line 2: transport needs a type: "http", "file" or another of '
        "the client's.",
    ),
    "a log store of the user's": (
        '[spark]\n"spark.delta.logStore.file.impl" = "org.example.Store"\n' + SOURCE,
        "lockstep.toml: line 2: 'spark.delta.logStore.file.impl' cannot be set: Lockstep has a "
        "log store of its own, which keeps a run that lost its lock from committing late.",
    ),
    "a version that is to be committed": (
        "[spark.spark.lockstep.commit]\nversion = 7\n" + SOURCE,
        "lockstep.toml: line 2: 'spark.lockstep.commit.version' cannot be set: Lockstep has a "
        "log store of its own, which keeps a run that lost its lock from committing late.",
    ),
    "a password in a DSN": (
        '[ledger]\ndsn = "postgresql://me:hunter2@db/books"\n' + SOURCE,
        "lockstep.toml: line 2: a DSN with a password in the file is refused; write env:NAME.",
    ),
    "a password in a key=value DSN": (
        '[ledger]\ndsn = "host=db password=hunter2"\n' + SOURCE,
        "lockstep.toml: line 2: a DSN with a password in the file is refused; write env:NAME.",
    ),
    "a password with slashes in a key=value DSN": (
        '[ledger]\ndsn = "host=db password=https://hunter2"\n' + SOURCE,
        "lockstep.toml: line 2: a DSN with a password in the file is refused; write env:NAME.",
    ),
    "plain text to another machine": (
        SOURCE.replace("127.0.0.1", "db.example.org") + 'tls = "off"\n',
        'lockstep.toml: line 7: tls = "off" would send passwords and rows to db.example.org in '
        'the clear; use "verify" or "required", or add tls_force = true.',
    ),
    "plain text to a standby beside a host from the environment": (
        SOURCE.replace("127.0.0.1", "env:SHOP_HOST")
        + 'tls = "off"\nstandby = { host = "db2.example.org" }\n',
        'lockstep.toml: line 7: tls = "off" would send passwords and rows to db2.example.org in '
        'the clear; use "verify" or "required", or add tls_force = true.',
    ),
    "a wrong choice": (
        SOURCE + 'tls = "of"\n',
        "lockstep.toml: line 7: 'tls' must be 'verify', 'required' or 'off'.",
    ),
    "a wrong cron expression": (
        SOURCE + 'schedule = "hourly"\n',
        "lockstep.toml: line 7: 'hourly' is not a cron expression such as */10 * * * *.",
    ),
    "a wrong name": (
        SOURCE.replace('"shop"', '"Shop"'),
        "lockstep.toml: line 2: 'name' must be a lower-case name such as shop (a letter, then "
        "letters, digits or _, 32 at most).",
    ),
    "a missing key": (
        SOURCE.replace('user = "lockstep"\n', ""),
        "lockstep.toml: line 1: the source lacks 'user'.",
    ),
    "no source": ("", "lockstep.toml: there is no [[sources]] table."),
    "two sources of one name": (
        SOURCE + SOURCE,
        "lockstep.toml: two sources have the name 'shop'; each needs its own.",
    ),
    "two sources that share a name in Dagster": (
        SOURCE + SOURCE.replace('"shop"', '"shop_upkeep"'),
        "lockstep.toml: the sources 'shop' and 'shop_upkeep' would share a name in Dagster, "
        "'lockstep_shop_upkeep'; rename one of them.",
    ),
    "changes that go before they are replayed": (
        '[upkeep]\nkeep_changes = "1d"\n'
        + SOURCE
        + '[sources.replay]\nschedule = "0 3 * * *"\nspan = "2d"\n',
        "lockstep.toml: shop replays the last 48 hours, but keep_changes keeps only 24 hours; "
        "make it at least as long.",
    ),
    "a port in quotes": (
        SOURCE + 'port = "3306"\n',
        "lockstep.toml: line 7: 'port' must be a number without quotes.",
    ),
    "a start that is none": (
        SOURCE + 'start = "yesterday"\n',
        "lockstep.toml: line 7: 'yesterday' is not a place in time; expected "
        "2026-11-01T06:00:00Z, binlog.000012:4567, binlog.000012@2026-11-01T06:00:00Z, "
        "gtid:<set>, run:<id>, earliest, latest or snapshot.",
    ),
    "a pattern without a database": (
        SOURCE.replace("shop.*", "orders"),
        "lockstep.toml: line 6: 'orders' is not a pattern such as shop.* (database.table).",
    ),
    "no pattern at all": (
        SOURCE.replace('"shop.*"', ""),
        "lockstep.toml: line 6: 'tables' must not be empty.",
    ),
    "not TOML": (
        "[lake\n",
        "lockstep.toml: line 1: not TOML: expected ']' at the end of a table declaration.",
    ),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_has_one_sentence(text: str, message: str) -> None:
    """One mistake: file, line, what is wrong; exit code 2; the secret is not repeated."""
    error = refused(text)
    assert type(error) is ConfigurationError
    assert error.message == message
    assert "hunter2" not in repr((error.message, error.hint, error.__cause__, error.__context__))


def test_what_is_not_built_is_refused_by_name() -> None:
    """A policy that this version lacks is `NotYet`, not a typing error."""
    error = refused(SOURCE + 'foreign_keys = "follow"\n')
    assert type(error) is NotYet
    assert error.message == (
        'lockstep.toml: line 7: "follow" is not built yet; write "quarantine" or "resnapshot".'
    )


def test_references_in_a_lineage_transport_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """At any depth, and when it is needed; what only tells where a secret is may stand there, and a
    path begins at the file."""
    text = (
        '[lineage.transport]\ntype = "file"\nlog_file_path = "events"\ntokenEndpoint = "https://x"\n'
        'several = [{ token = "env:LINEAGE_KEY" }]\n' + SOURCE
    )
    monkeypatch.setenv("LINEAGE_KEY", "hunter2")
    settings = parse_settings(text, Path("/srv/lockstep.toml"))
    assert "hunter2" not in repr(settings)
    assert settings.lineage_transport() == {
        "type": "file",
        "log_file_path": "/srv/events",
        "tokenEndpoint": "https://x",
        "several": [{"token": "hunter2"}],
    }
    assert parse_settings(SOURCE, Path("lockstep.toml")).file.lineage is None


def test_an_object_stores_secrets_stand_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its options are told by reference, and looked up when the lake is opened; a store of another
    kind is refused by its name."""
    lake = '[lake]\npath = "s3://bucket/lake"\noptions = {{ access_key_id = "{}" }}\n' + SOURCE
    assert "a literal value of 'access_key_id'" in refused(lake.format("AKIA")).message
    monkeypatch.setenv("LAKE_KEY", "AKIA")
    settings = parse_settings(lake.format("env:LAKE_KEY"), Path("lockstep.toml"))
    with pytest.raises(ConfigurationError, match=r"^lake: Missing SecretAccessKey\.$"):
        settings.lake_path()
    both = 'env:LAKE_KEY", secret_access_key = "env:LAKE_KEY'
    found = parse_settings(lake.format(both), Path("lockstep.toml")).lake_path()
    assert str(found) == "s3://bucket/lake"
    assert "AKIA" not in repr(found)
    assert "ftp" in refused('[lake]\npath = "ftp://host/lake"\n' + SOURCE).message


def test_all_mistakes_are_told_at_once() -> None:
    """Every mistake in the order of the lines; a not-yet among others does not soften them."""
    source = SOURCE.replace('"shop"', '"1"')
    error = refused(f'[lake]\npth = "x"\n{source}port = 0\nforeign_keys = "follow"\n')
    assert type(error) is ConfigurationError
    assert error.message == (
        "lockstep.toml has 4 mistakes:\n"
        "  line 2: unknown key 'pth'; did you mean 'path'?\n"
        "  line 4: 'name' must be a lower-case name such as shop (a letter, then letters, "
        "digits or _, 32 at most)\n"
        "  line 9: 'port' must be a number from 1 to 65535\n"
        '  line 10: "follow" is not built yet; write "quarantine" or "resnapshot"'
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[lake]\nkeep = "1h"\n', "'keep' must be \"1d\" or longer"),
        ('[upkeep]\nkeep_changes = "23h"\n', "'keep_changes' must be \"1d\" or longer"),
        ('[upkeep]\ndagster_runs = "1h"\n', "'dagster_runs' must be \"1d\" or longer"),
        ('[upkeep]\nfile_size = "1KiB"\n', "'file_size' must be \"1MiB\" or larger"),
        ("[upkeep]\nsmall_files = 1\n", "'small_files' must be 2 or more"),
        ("[upkeep]\ndeleted_share = 1.5\n", "'deleted_share' must be more than 0 and at most 1"),
        (
            "[sources.snapshot]\nconnections = 65\n",
            "'connections' must be a number from 1 to 64",
        ),
        (
            "[sources.snapshot]\nmax_threads_running = 0\n",
            "'max_threads_running' must be 1 or more",
        ),
        ("port = 65536\n", "'port' must be a number from 1 to 65535"),
    ],
)
def test_a_value_out_of_range_is_told_the_range(text: str, sentence: str) -> None:
    """Least and greatest, as the file writes them."""
    of_source = not text.startswith("[") or text.startswith("[sources")
    message = refused(SOURCE + text if of_source else text + SOURCE).message
    assert message.endswith(f"{sentence}.")


@pytest.mark.parametrize(
    "text",
    [
        '[privacy]\nkey = "env:KEY"\nreplaces = "ABC"\n',
        '[dagster]\nlocation = "two words"\n',
        '[dagster]\ngroup = "two words"\n',
        '[dagster]\nkey_prefix = ["{database}"]\n',
    ],
)
def test_a_value_of_another_pattern_is_told_the_pattern(text: str) -> None:
    key = text.splitlines()[-1].split()[0]
    assert f"{key!r} must " in refused(text + SOURCE).message


def test_every_range_has_words() -> None:
    """Whatever the sections bound by more than zero."""
    bounded = set[str]()
    sections: set[type[BaseModel]] = {ConfigFile, *load._SECTIONS.values()}
    for section in sections:
        for key, schema in section.model_json_schema()["properties"].items():
            for one in (schema, *schema.get("anyOf", ())):
                if one.get("minimum", 0) != 0 or "maximum" in one:
                    bounded.add(key)
    assert bounded == load._RANGE_RULES.keys()


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    """No lockstep.toml: one sentence with `lockstep init`."""
    with pytest.raises(ConfigurationError) as caught:
        load_settings(tmp_path / "lockstep.toml")
    assert "lockstep init" in caught.value.hint


def test_a_valid_file_becomes_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Defaults, relative paths, patterns and start as the other rooms need them."""
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2")
    settings = parsed(
        '[spark]\n"spark.master" = "local[2]"\nspark.ui.enabled = false\n'
        + SOURCE
        + 'exclude = ["shop.tmp_*"]\nstart = "binlog.000012:4567"\nschedule = "*/5 * * * *"\n',
        tmp_path,
    )
    source = settings.source("shop")
    plan = source.plan()
    assert plan.patterns == TablePatterns(("shop.*",), ("shop.tmp_*",))
    assert plan.start == AtCoordinates(Coordinates(LogFile("binlog", 12), 4567))
    assert (source.host(), source.section.port, source.user(), source.section.tls) == (
        "127.0.0.1",
        3306,
        "lockstep",
        "verify",
    )
    assert source.password() == "hunter2"
    assert source.schedule == "*/5 * * * *"
    assert settings.lake_path() == tmp_path / "lake"
    assert settings.ledger_dsn() == "embedded"
    assert settings.spark_conf() == {"spark.master": "local[2]", "spark.ui.enabled": "false"}


def test_without_a_start_the_file_is_valid() -> None:
    """Whether a start is needed is decided when a run begins, not by the file."""
    assert parsed(SOURCE).source("shop").plan().start is None


def test_policies_default_to_what_loses_nothing() -> None:
    """Without a word about them the lake keeps what it has, and a person decides the rest."""
    assert asdict(parsed(SOURCE).source("shop").plan().lake_policies) == {
        "on_rewrite": "quarantine",
        "dropped_columns": "keep",
        "dropped_tables": "keep",
        "foreign_keys": "quarantine",
        "deletes": "remove",
        "truncates": "delete",
        "readers": "spark",
        "updated_columns": False,
        "stamps": (),
        "cluster_by": (),
    }


@pytest.mark.parametrize(
    ("key", "policy"),
    [
        ("on_rewrite", "resnapshot"),
        ("dropped_columns", "drop"),
        ("dropped_tables", "drop"),
        ("foreign_keys", "resnapshot"),
        ("deletes", "soft"),
        ("deletes", "ignore"),
        ("truncates", "ignore"),
        ("readers", "any"),
    ],
)
def test_each_policy_is_read(key: str, policy: str) -> None:
    """It reaches the run, and changes no other."""
    plan = parsed(SOURCE + f'{key} = "{policy}"\n').source("shop").plan()
    changed: dict[str, Any] = {key: policy}
    assert plan.lake_policies == replace(LakePolicies(), **changed)


def test_every_policy_has_a_key_that_reaches_the_run() -> None:
    """Those of the lake, which a table may have of its own, and those of a start."""
    assert {field.name for field in fields(LakePolicies)} <= TableSection.model_fields.keys()
    keys = {
        "on_position_lost": "'resnapshot'",
        "on_source_changed": "'timestamp'",
        "fallback_interval": "'5s'",
    }
    assert keys.keys() == {field.name for field in fields(StartPolicies)}
    text = "".join(f"{key} = {value}\n" for key, value in keys.items())
    policies = asdict(parsed(SOURCE + text).source("shop").plan().start_policies)
    defaults = asdict(StartPolicies())
    assert [key for key in keys if policies[key] == defaults[key]] == []


def test_updated_columns_are_asked_for() -> None:
    """It reaches the run; a word in quotes is a mistake."""
    plan = parsed(SOURCE + "updated_columns = true\n").source("shop").plan()
    assert plan.lake_policies == LakePolicies(updated_columns=True)
    error = refused(SOURCE + 'updated_columns = "yes"\n')
    assert error.message == "lockstep.toml: line 7: 'updated_columns' must be true or false."


def test_a_policy_that_nobody_knows_is_a_mistake() -> None:
    """The sentence names the words there are."""
    error = refused(SOURCE + 'deletes = "hard"\n')
    assert type(error) is ConfigurationError
    assert error.message == "lockstep.toml: line 7: 'deletes' must be 'remove', 'soft' or 'ignore'."


def test_references_work_in_every_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Host from the environment, user from a file beside lockstep.toml."""
    monkeypatch.setenv("SHOP_HOST", "localhost")
    (tmp_path / "user.txt").write_text("somebody\n")
    text = SOURCE.replace("127.0.0.1", "env:SHOP_HOST").replace('"lockstep"', '"file:user.txt"')
    source = parsed(text, tmp_path).source("shop")
    assert (source.host(), source.user()) == ("localhost", "somebody")


def test_a_reference_is_held_to_the_same_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is read from the environment is no way around `tls`."""
    monkeypatch.setenv("SHOP_HOST", "db.example.org")
    text = SOURCE.replace("127.0.0.1", "env:SHOP_HOST") + 'tls = "off"\n'
    with pytest.raises(ConfigurationError):
        parsed(text).source("shop").host()
    assert parsed(text + "tls_force = true\n").source("shop").host() == "db.example.org"


def test_a_reference_that_leads_nowhere_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Loading needs no secret; using one that is not there names the reference."""
    monkeypatch.delenv("SHOP_PASSWORD", raising=False)
    source = parsed(SOURCE, tmp_path).source("shop")
    with pytest.raises(SecretMissing) as caught:
        source.password()
    assert caught.value.message == "The environment variable SHOP_PASSWORD is not set."
    for path in ("absent", "~no-such-account/absent", "absent\\u0000"):
        text = SOURCE.replace("env:SHOP_PASSWORD", f"file:{path}")
        with pytest.raises(SecretMissing, match="absent"):
            parsed(text, tmp_path).source("shop").password()


def test_a_block_says_what_is_shown_of_its_tables(tmp_path: Path) -> None:
    """Every key, in each way it can be written; a later block hides more, and never less."""
    (tmp_path / "key").write_text("a key that nobody guesses\n")
    text = (
        SOURCE
        + """
[[sources.table]]
match = ["shop.c*"]
include_columns = "*"
exclude_columns = "ssn"
hash_columns = ["email", "name"]
mask_columns = { phone = "last:4", zip = "first:2", born = "year", note = "null" }
types = { active = "boolean", id = "uuid", took = "microseconds", total = "string" }
rows = "not test and country in ('DE', 'FR')"

[[sources.table]]
match = "shop.carts"
hash_columns = { name = "exact", nick = "lower" }
exclude_columns = ["*_secret"]
mask_columns = { phone = "last:9", zip = "null" }
rows = "id > 1"

[privacy]
key = "file:key"
"""
    )
    settings = parsed(text, tmp_path)
    key = settings.privacy_key()
    assert key is not None
    assert key.fingerprint == PrivacyKey(b"a key that nobody guesses").fingerprint
    plan = settings.source("shop").plan()
    customers, carts = (
        plan.shape_rules_of(TableName("shop", name)) for name in ("customers", "carts")
    )
    assert customers == ShapeRules(
        include_columns=("*",),
        exclude_columns=("ssn",),
        hash_columns={"email": Hash.EXACT, "name": Hash.EXACT},
        mask_columns={
            "phone": Mask("last", 4),
            "zip": Mask("first", 2),
            "born": Mask("year"),
            "note": Mask("null"),
        },
        types={
            "active": Conversion.BOOLEAN,
            "id": Conversion.UUID,
            "took": Conversion.MICROSECONDS,
            "total": Conversion.STRING,
        },
        rows="not test and country in ('DE', 'FR')",
    )
    assert carts == replace(
        customers,
        exclude_columns=("ssn", "*_secret"),
        hash_columns={"email": Hash.EXACT, "name": Hash.EXACT, "nick": Hash.LOWER},
        mask_columns={**(customers.mask_columns or {}), "zip": Mask("null")},
        rows=f"({customers.rows}) and (id > 1)",
    )
    assert plan.shape_rules_of(TableName("shop", "orders")) is None


@pytest.mark.parametrize("written", ["", "short\n"])
def test_a_privacy_key_has_some_length(written: str, tmp_path: Path) -> None:
    """One that could be guessed hides nothing."""
    (tmp_path / "key").write_text(written)
    settings = parsed('[privacy]\nkey = "file:key"\n' + SOURCE, tmp_path)
    with pytest.raises(ConfigurationError, match=r"16 bytes|is empty") as caught:
        settings.privacy_key()
    assert caught.value.hint


def test_a_misspelt_key_of_notify_is_told_the_nearest() -> None:
    message = refused('[notify]\nurl = ["env:CHANNEL"]\n' + SOURCE).message
    assert "did you mean 'urls'?" in message
