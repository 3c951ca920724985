"""MariaDB servers for the tests: where they come from, their data folders, their settings."""
