"""Reading lockstep.toml: the whole file is judged before anything is opened."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pydantic import ValidationError

from pipeline.errors import ConfigurationError
from resources.config.locate import key_lines
from resources.config.model import File
from resources.config.problems import problems_of, refusal
from resources.config.settings import Settings


def load_settings(path: Path) -> Settings:
    """The settings in the file at `path`.

    `ConfigurationError` when it is missing, unreadable or wrong, with every mistake and
    its line; `NotYet` when all that is wrong is not built yet.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"There is no {path}.",
            hint="`lockstep init` writes one; or name another with --config FILE",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read as UTF-8 text.", hint=f"check {path} and who may read it"
        ) from error
    return parse_settings(text, path.resolve())


def parse_settings(text: str, path: Path) -> Settings:
    """As `load_settings`, for a text that is not (yet) a file."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = re.sub(r" \(at line (\d+), column (\d+)\)$", "", str(error))
        place = re.search(r"at line (\d+)", str(error))
        where = f"line {place[1]}" if place else "the end"
        raise ConfigurationError(
            f"{path.name}: {where}: not TOML: {said[:1].lower()}{said[1:]}.",
            hint="a text needs quotes, a table a [header]; see https://toml.io",
        ) from error
    try:
        return Settings(File.model_validate(data), path)
    except ValidationError as error:
        # The validation error itself holds the file's values, so it is not the cause.
        problems = problems_of(error, key_lines(text))
    raise refusal(path.name, problems)
