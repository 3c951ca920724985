"""What every test may ask for; each server's fixtures are a plugin of their own."""

from __future__ import annotations

from hypothesis import settings

pytest_plugins = ["tests.fix_mysql", "tests.fix_mariadb"]

# Time is not a property: the first example may compile code, and machines differ.
settings.register_profile("lockstep", deadline=None)
settings.load_profile("lockstep")
