"""lockstep.toml → validated settings. Secrets are references, never values.

Belongs here: the file's shape, where a mistake stands, what a reference leads to.
Does not: connecting to anything, defaults of other rooms, the environment (it is read
only when a reference is resolved).
"""

from __future__ import annotations

from resources.config.load import load_settings
from resources.config.secrets import Secret
from resources.config.settings import Settings
from resources.config.source_settings import SourceSettings

__all__ = ["Secret", "Settings", "SourceSettings", "load_settings"]
