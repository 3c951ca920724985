"""Dagster's own storage where it does not work; where it does: `test_home`, `test_deploy`."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets.home import open_instance
from pipeline.errors import ConfigurationError


@pytest.mark.parametrize(
    ("storage", "words"),
    [
        pytest.param(  # Dagster tries for ten seconds
            "postgres:\n    postgres_url: postgresql://me@127.0.0.1:1/x",
            "127.0.0.1",
            marks=pytest.mark.soak,
        ),
        ("postgres:\n    postgres_url: postgresql+nodriver://me@127.0.0.1:1/x", "nodriver"),
        ("nowhere:\n    a: b", "storage"),
    ],
    ids=["nobody answers", "no driver", "no storage"],
)
def test_storage_that_does_not_work_is_configuration(
    tmp_path: Path, storage: str, words: str
) -> None:
    """2, with the file to correct; no defect of ours."""
    (tmp_path / "dagster.yaml").write_text(f"storage:\n  {storage}\n")
    with pytest.raises(ConfigurationError) as refused, open_instance(tmp_path):
        pass
    assert words in refused.value.message
    assert str(tmp_path / "dagster.yaml") in refused.value.hint
