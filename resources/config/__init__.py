"""Reads and validates lockstep.toml. Secrets in it are references, never values; the
environment is read only when a reference is resolved. Nothing here connects to a
server."""

from __future__ import annotations

from lockstep.resources.config.load import load_settings
from lockstep.resources.config.settings import Settings, SourceSettings

__all__ = ["Settings", "SourceSettings", "load_settings"]
