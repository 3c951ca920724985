"""lockstep.toml is judged whole, and every mistake is told with its line and its cure."""

from __future__ import annotations

import json
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
from lockstep.resources.lake.store.paths import LakePath

SOURCE = """\
[[sources]]
name = "shop"
host = "127.0.0.1"
user = "lockstep"
password = "env:SHOP_PASSWORD"
tables = ["shop.*"]
"""


CARTS = SOURCE + '[[sources.table]]\nmatch = "shop.carts"\n'


def parsed(text: str, folder: Path = Path("/project")) -> Settings:
    return parse_settings(text, folder / "lockstep.toml")


def refused(text: str) -> LockstepError:
    with pytest.raises(LockstepError) as caught:
        parsed(text)
    return caught.value


UNITY = '[catalog]\nkind = "unity"\nuri = "http://127.0.0.1:8080"\nname = "lake"\n'
LITERAL = "a literal secret is refused; write env:NAME or file:PATH"
DSN = "line 2: a DSN with a password in the file is refused; write env:NAME"
LOG_STORE = (
    "cannot be set: Lockstep has a log store of its own, which keeps a run that lost its lock from "
    "committing late"
)
ADDRESS = "line 1: uri is not an address such as http://catalog.example.com"
NO_CONDITION = (
    "is not part of a row condition: write columns compared with literals, IN, BETWEEN, LIKE and "
    "IS NULL, joined by AND, OR and NOT"
)
NO_MASK = "is no mask: write first:N, last:N, year or null"
IN_THE_CLEAR = 'use "verify" or "required", or add tls_force = true'

OF_A_SOURCE = {
    'tls = "of"': "'tls' must be 'verify', 'required' or 'off'",
    'schedule = "hourly"': "'hourly' is not a cron expression such as */10 * * * *",
    'schedule = "0 0 31 2 *"': "the cron expression '0 0 31 2 *' names no day of the calendar",
    "read_timeout = true": "'read_timeout' must be a number",
    "read_timeout = inf": "'read_timeout' must be a number of seconds below a hundred years",
    'port = "3306"': "'port' must be a number without quotes",
    'deletes = "hard"': "'deletes' must be 'remove', 'soft' or 'ignore'",
    'updated_columns = "yes"': "'updated_columns' must be true or false",
    'tabels = ["a.b"]': "unknown key 'tabels'; did you mean 'tables'?",
    'max_bytes = "1GiB"': "unknown key 'max_bytes' here; it belongs under [sources.bounds]",
    'hash_columns = ["email"]': (
        "unknown key 'hash_columns' here; it belongs under [[sources.table]]"
    ),
    'on_source_changed = "gtid"': "'on_source_changed' must be 'refuse' or 'timestamp'",
    "fallback_interval = -60": "'fallback_interval' must not be less than zero",
    'fallback_interval = "-60s"': "'-60s' is not a duration such as 60s or 5m",
    'fallback_interval = "abc"': "'abc' is not a duration such as 60s or 5m",
    'start = "yesterday"': (
        "'yesterday' is not a place in time; expected 2026-11-01T06:00:00Z, binlog.000012:4567, "
        "binlog.000012@2026-11-01T06:00:00Z, gtid:<set>, run:<id>, earliest, latest or snapshot"
    ),
    'start = "2026-11-31T06:00:00Z"': (
        "'2026-11-31T06:00:00Z' is not in the calendar: day is out of range for month"
    ),
}
"""What is wrong in the line behind `SOURCE`, and what is said of it."""

IN_A_BLOCK = {
    'on_position_lost = "resnapshot"': (
        "'on_position_lost' applies to a source as a whole, not to some of its tables; it belongs "
        "under [[sources]]"
    ),
    'truncates = "keep"': "'truncates' must be 'delete' or 'ignore'",
    "hash_columns = []": "'hash_columns' must not be empty",
    'exclude_columns = ""': "'exclude_columns' must not be empty",
    "include_columns = [1]": "'include_columns' must be a text in quotes",
    'hash_columns = { email = "md5" }': "'email' must be 'exact' or 'lower'",
    'mask_columns = { phone = "last" }': f"'last' {NO_MASK}",
    'mask_columns = { phone = "last:0" }': f"'last:0' {NO_MASK}",
    'types = { active = "integer" }': (
        "'active' must be 'boolean', 'uuid', 'microseconds' or 'string'"
    ),
    'rows = "length(name) > 3"': f"'LENGTH(name) > 3' {NO_CONDITION}",
    'rows = "total > paid"': f"'paid' {NO_CONDITION}",
    'rows = "id in (select 1)"': f"'id IN (SELECT 1)' {NO_CONDITION}",
    'rows = "country = "': "'country = ' cannot be parsed as a condition of SQL",
}
"""In the line behind `CARTS`, for some of a source's tables."""

IN_A_SECTION = {
    ("bounds", "max_bytes = 0"): "'max_bytes' must be more than zero",
    ("bounds", 'max_bytes = "0GiB"'): "'max_bytes' must be more than zero",
    ("bounds", 'max_bytes = "a lot"'): "'a lot' is not a size such as 512MiB or 4GiB",
    ("bounds", "max_transactions = 0"): "'max_transactions' must be more than zero",
    ("bounds", "max_transactions = -1"): "'max_transactions' must be more than zero",
    ("bounds", "max_seconds = 0"): "'max_seconds' must be more than zero",
    ("bounds", "max_seconds = nan"): (
        "'max_seconds' must be a number of seconds below a hundred years"
    ),
    ("bounds", "max_byte = 5"): "unknown key 'max_byte'; did you mean 'max_bytes'?",
    ("trigger", 'bites = "1GiB"'): "unknown key 'bites'; did you mean 'bytes'?",
    ("standby", 'hots = "x"\nhost = "x"'): "unknown key 'hots'; did you mean 'host'?",
    ("standby", 'start = "2026-11-01T06:00:00"\nhost = "x"'): (
        "'2026-11-01T06:00:00' does not say in which time zone; expected 2026-11-01T06:00:00Z, or "
        "with an offset as in 2026-11-01T08:00:00+02:00"
    ),
    ("standby", 'server_uuid = "shop-2"\nhost = "x"'): (
        "'server_uuid' must be what the server shows for SELECT @@server_uuid, in lower case, or "
        "server-id:<number> for MariaDB"
    ),
    ("snapshot", 'read_from = "db3:no"'): (
        "'db3:no' is neither a host nor a host with a port such as db2:3306"
    ),
}
"""In the first line of a section of a source."""

ELSEWHERE = {
    "": "there is no [[sources]] table",
    "[lake\n": "line 1: not TOML: expected ']' at the end of a table declaration",
    "lakes = 1\n" + SOURCE: "line 1: unknown key 'lakes'; did you mean 'lake'?",
    "[lake]\nmax_seconds = 60\n" + SOURCE: (
        "line 2: unknown key 'max_seconds' here; it belongs under [sources.bounds] or "
        "[sources.snapshot]"
    ),
    UNITY + 'token = "hunter2"\n' + SOURCE: f"line 5: {LITERAL}",
    UNITY.replace("127.0.0.1", "catalog.example.com") + 'token = "env:TOKEN"\n' + SOURCE: (
        "line 1: http:// would send the token unencrypted; write https://"
    ),
    '[catalog]\nkind = "hive"\n' + SOURCE: "line 1: kind = 'hive' needs uri",
    UNITY.replace("http://", "thrift://") + SOURCE: ADDRESS,
    UNITY.replace("127.0.0.1", ":hunter2@127.0.0.1") + SOURCE: ADDRESS,
    UNITY.replace(":8080", ":808O") + SOURCE: ADDRESS,
    UNITY + 'schemas = "all"\n' + SOURCE: (
        "line 5: 'all' has no {database} in it, so tables of two databases could get the same name"
    ),
    '[dagster]\nwebserver = "http://127.0.0.1:808O"\n' + SOURCE: (
        "line 2: webserver is not an address such as http://127.0.0.1:3000"
    ),
    '[privacy]\nkey = "hunter2"\n' + SOURCE: f"line 2: {LITERAL}",
    '[spark]\n"spark.hadoop.fs.s3a.secret.key" = "hunter2"\n' + SOURCE: (
        "line 2: a literal value of 'spark.hadoop.fs.s3a.secret.key' is refused (its name suggests "
        "a secret); write env:NAME or file:PATH"
    ),
    '[spark]\n"spark.delta.logStore.file.impl" = "org.example.Store"\n' + SOURCE: (
        f"line 2: 'spark.delta.logStore.file.impl' {LOG_STORE}"
    ),
    "[spark.spark.lockstep.commit]\nversion = 7\n" + SOURCE: (
        f"line 2: 'spark.lockstep.commit.version' {LOG_STORE}"
    ),
    '[lineage.transport]\ntype = "http"\nauth = { apiKey = "hunter2" }\n' + SOURCE: (
        "line 1: a literal value of 'apiKey' is refused (it may be a secret); write env:NAME or "
        "file:PATH"
    ),
    '[lineage]\ntransport = { url = "http://127.0.0.1" }\n' + SOURCE: (
        'line 2: transport needs a type: "http", "file" or another of the client\'s'
    ),
    '[ledger]\ndsn = "postgresql://me:hunter2@db/books"\n' + SOURCE: DSN,
    '[ledger]\ndsn = "host=db password=hunter2"\n' + SOURCE: DSN,
    '[ledger]\ndsn = "host=db password=https://hunter2"\n' + SOURCE: DSN,
    '[notify]\nurls = ["env:CHANNEL"]\nurl = "x"\n'
    + SOURCE: "line 3: unknown key 'url'; did you mean 'urls'?",
    SOURCE.replace("env:SHOP_PASSWORD", "hunter2"): f"line 5: {LITERAL}",
    SOURCE.replace("127.0.0.1", "db.example.org") + 'tls = "off"\n': (
        'line 7: tls = "off" would send passwords and rows to db.example.org in the clear; '
        + IN_THE_CLEAR
    ),
    SOURCE.replace("127.0.0.1", "env:SHOP_HOST")
    + 'tls = "off"\nstandby = { host = "db2.example.org" }\n': (
        'line 7: tls = "off" would send passwords and rows to db2.example.org in the clear; '
        + IN_THE_CLEAR
    ),
    SOURCE.replace('"shop"', '"Shop"'): (
        "line 2: 'name' must be a lower-case name such as shop (a letter, then letters, digits or "
        "_, 32 at most)"
    ),
    SOURCE.replace('user = "lockstep"\n', ""): "line 1: the source lacks 'user'",
    SOURCE + "[sources.standby]\nport = 3307\n": "line 7: the source's standby lacks 'host'",
    SOURCE + '[[sources.table]]\ndeletes = "soft"\n': "line 7: the source's table lacks 'match'",
    CARTS: "line 7: the block has only match; add a setting for these tables",
    SOURCE.replace("shop.*", "orders"): (
        "line 6: 'orders' is not a pattern such as shop.* (database.table)"
    ),
    SOURCE.replace('"shop.*"', ""): "line 6: 'tables' must not be empty",
    SOURCE + SOURCE: "two sources have the name 'shop'; each needs its own",
    SOURCE + SOURCE.replace('"shop"', '"shop_upkeep"'): (
        "the sources 'shop' and 'shop_upkeep' would share a name in Dagster, "
        "'lockstep_shop_upkeep'; rename one of them"
    ),
    '[upkeep]\nkeep_changes = "1d"\n'
    + SOURCE
    + '[sources.replay]\nschedule = "0 3 * * *"\nspan = "2d"\n': (
        "shop replays the last 48 hours, but keep_changes keeps only 24 hours; make it at least as "
        "long"
    ),
}
MISTAKES = {
    **{f"{SOURCE}{line}\n": f"line 7: {said}" for line, said in OF_A_SOURCE.items()},
    **{f"{CARTS}{line}\n": f"line 9: {said}" for line, said in IN_A_BLOCK.items()},
    **{
        f"{SOURCE}[sources.{section}]\n{line}\n": f"line 8: {said}"
        for (section, line), said in IN_A_SECTION.items()
    },
    **ELSEWHERE,
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_has_one_sentence(text: str) -> None:
    """One mistake: file, line, what is wrong; exit code 2; the secret is not repeated."""
    error = refused(text)
    assert type(error) is ConfigurationError
    assert error.message.removesuffix(".") == f"lockstep.toml: {MISTAKES[text]}"
    assert error.recovery.exit_code == 2
    assert error.hint
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
    with pytest.raises(ConfigurationError, match=r"^lake: Missing SecretAccessKey\.\n"):
        settings.lake_path()
    both = 'env:LAKE_KEY", secret_access_key = "env:LAKE_KEY'
    found = parse_settings(lake.format(both), Path("lockstep.toml")).lake_path()
    assert str(found) == "s3://bucket/lake"
    assert "AKIA" not in repr(found)
    assert "ftp" in refused('[lake]\npath = "ftp://host/lake"\n' + SOURCE).message


@pytest.mark.parametrize("part", ["my%20lake", "my lake", "ü", "a//b", ".", "a/../b", "a?b", "a#b"])
def test_a_prefix_that_clients_write_differently_is_refused(part: str) -> None:
    """delta-rs would look for files where our client does not put them."""
    options = 'region = "r", skip_signature = "true"'
    lake = f'[lake]\npath = "s3://bucket/in/{part}/"\noptions = {{ {options} }}\n{SOURCE}'
    settings = parse_settings(lake, Path("lockstep.toml"))
    with pytest.raises(ConfigurationError, match="which clients of stores do not write alike"):
        settings.lake_path()


@pytest.mark.parametrize("part", ["feature%2Fx", "a\\b"])
def test_a_folder_whose_name_is_decoded_is_refused(part: str, tmp_path: Path) -> None:
    """Also if it is above the folder of lockstep.toml, as a workspace of Jenkins is."""

    def lake_path(folder: Path, lake: str) -> LakePath:
        text = f"[lake]\npath = '{lake}'\n{SOURCE}"
        return parse_settings(text, folder / "lockstep.toml").lake_path()

    assert lake_path(tmp_path / "50%", "a b%") == tmp_path / "50%" / "a b%"
    for folder, lake in ((tmp_path, f"{part}/lake"), (tmp_path / part, "lake")):
        with pytest.raises(ConfigurationError, match="delta-rs reads as another character"):
            lake_path(folder, lake)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ('endpoint = "minio:9000"', "endpoint is not an address such as"),
        ('endpoint = "http://minio:port"', "endpoint is not an address such as"),
        ('endpoint = "http://minio:9000"', r'has no TLS, which only allow_http = "true" allows'),
        ('access_key_id = "env:PASTED"', "access_key_id has a character that no request can have"),
    ],
)
def test_an_option_that_no_client_can_use_is_refused(
    options: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clients panic, or say only that the store does not answer."""
    monkeypatch.setenv("PASTED", "AKIA\n")
    lake = f'[lake]\npath = "s3://bucket/in"\noptions = {{ region = "r", {options} }}\n{SOURCE}'
    settings = parse_settings(lake, Path("lockstep.toml"))
    with pytest.raises(ConfigurationError, match=reason):
        settings.lake_path()


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
        ("[sources.snapshot]\nconnections = 65\n", "'connections' must be a number from 1 to 64"),
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


def test_the_file_leaves_to_a_run_what_only_a_run_can_tell() -> None:
    """Whether a start is needed. A run as a start has to be chosen: no source begins with one."""
    assert parsed(SOURCE).source("shop").plan().start is None
    error = refused(SOURCE + 'start = "run:0f3c1d2e"\n')
    assert "`lockstep start-at run:0f3c1d2e --source NAME --reason …`" in error.message


@pytest.mark.parametrize(
    ("text", "seconds"), [("600", 600), ('"10m"', 600), ("0", 0), ("1.5", 1.5)]
)
def test_a_time_is_a_number_of_seconds_or_a_duration(text: str, seconds: float) -> None:
    """No interval at all is a choice, too; a budget may be a part of a second."""
    if seconds != 1.5:
        plan = parsed(SOURCE + f"fallback_interval = {text}\n").source("shop").plan()
        assert plan.start_policies.fallback_interval.total_seconds() == seconds
    if seconds:
        plan = parsed(SOURCE + f"[sources.bounds]\nmax_seconds = {text}\n").source("shop").plan()
        assert plan.budget.max_seconds == seconds


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
        ("updated_columns", True),
    ],
)
def test_each_policy_is_read(key: str, policy: str | bool) -> None:
    """It reaches the run, and changes no other."""
    plan = parsed(SOURCE + f"{key} = {json.dumps(policy)}\n").source("shop").plan()
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


def test_a_reference_does_not_stand_for_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only texts in the file may be references: `env:B` as the value of A is not resolved
    again, so it is neither a pattern nor an address."""
    monkeypatch.setenv("A", "env:B")
    excluding = parsed(SOURCE + 'exclude = ["env:A"]\n').source("shop")
    with pytest.raises(ConfigurationError, match="'env:B' is not a pattern"):
        excluding.plan()
    with pytest.raises(ConfigurationError, match="webserver is not an address"):
        parsed('[dagster]\nwebserver = "env:A"\n' + SOURCE).webserver()


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
