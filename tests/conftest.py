"""What every test may ask for; each server's fixtures are a plugin of their own."""

from __future__ import annotations

pytest_plugins = ["tests.fix_mysql"]
