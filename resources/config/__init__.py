"""Reads and validates lockstep.toml. Secrets in it are references, never values; the environment is
read only when a reference is resolved. Nothing here connects to a server."""

from __future__ import annotations

from resources.config.load import load_settings
from resources.config.secrets import Secret
from resources.config.settings import Settings
from resources.config.source_settings import SourceSettings

__all__ = ["Secret", "Settings", "SourceSettings", "load_settings"]
