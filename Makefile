# Everything a visitor or a developer types. Needs Python 3.11+, make and Java 17+.

# The distribution's is built with optimizations, version managers' builds often are not, and take half
# as long again for the same commands.
PYTHON ?= $(shell /usr/bin/python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo /usr/bin/)python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
WORKERS ?= 3
WORKSPACE ?= workspace.yaml
CODE := pipeline resources assets lockstep demo tests benchmarks

.DEFAULT_GOAL := help
.PHONY: help setup demo test acceptance check format pages ui bench soak jar release lock

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## virtual environment, pinned dependencies, Delta's jars; Java is checked
	@echo "Ready. Next: make demo, make test, make ui"

# The stamp is touched last: an interrupted set-up is taken up again. An environment that is there
# keeps its Python: what is installed in it was built for that.
$(READY): requirements-dev.lock pyproject.toml resources/lake/spark/lockstep-log-store.jar
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Lockstep needs Python 3.11 or newer, which \`$(PYTHON)\` is not. Another one: make setup PYTHON=/path/to/python3.12" >&2; \
	  exit 2; }
	@test -n "$$JAVA_HOME" || command -v java >/dev/null || { \
	  echo "Spark needs Java 17 or newer. On Debian or Ubuntu: apt-get install openjdk-17-jre-headless" >&2; \
	  exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  echo "Python's venv module is missing. On Debian or Ubuntu: apt-get install python3-venv" >&2; \
	  exit 2; }
	@echo "Installing the pinned dependencies into $(VENV) (once; a few minutes)"
	@$(BIN)/python -m pip install --quiet --no-deps --use-pep517 --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q pipeline resources assets lockstep
	@$(BIN)/lockstep setup --with s3
	@touch $@

demo: $(READY)  ## a shop in MySQL, followed into Delta tables and compared with them
	@$(BIN)/python -m demo

# Hundreds of processes import the same modules: a shell that has Python write no bytecode would have
# each compile them.
test acceptance: export PYTHONDONTWRITEBYTECODE :=
test: TESTS := not acceptance
test: $(READY)  ## Lockstep with real servers: MySQL, MariaDB, Postgres, Spark and Delta
	$(RUN_TESTS)

acceptance: TESTS := acceptance
acceptance: $(READY)  ## what a user does: first steps, pages as typed, Spark Connect, catalogs, other readers
	$(RUN_TESTS)

RUN_TESTS = @$(BIN)/python -m pytest -m "$(TESTS) and not soak" --numprocesses $(WORKERS) \
	  --durations 15 --dist loadscope --no-loadscope-reorder

check: $(READY)  ## format, lint, types, import rules; seconds
	@$(BIN)/ruff format --check --quiet $(CODE)
	@$(BIN)/ruff check --quiet $(CODE)
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(READY)  ## what `check` would ask for, done
	@$(BIN)/ruff check --fix --quiet $(CODE)
	@$(BIN)/ruff format $(CODE)

pages: $(READY)  ## what code makes of the documentation, made anew
	@$(BIN)/python -m tests.pages

ui: $(READY)  ## Dagster's page, on lockstep.toml or LOCKSTEP_CONFIG
	@DAGSTER_HOME="$$($(BIN)/python -m lockstep.assets.home)" $(BIN)/dagster dev -w $(WORKSPACE)

bench: export PYTHONDONTWRITEBYTECODE :=
bench: $(READY)  ## figures of this machine
	@$(BIN)/python -m benchmarks

soak: $(READY)  ## minutes of traffic, faults and runs
	@$(BIN)/python -m pytest -m soak

follow: $(READY)  ## follow the DDL in CASES=DIR on a real server; wrong ones fail
	@$(BIN)/python -m tests.schema.follow $(CASES) $(SERVER)

jar: $(READY)  ## compile the log stores and all other Java; needs a JDK
	@$(BIN)/python -m tests.lake.build_log_store

# From what is committed, in a folder of its own: nothing of the checkout's gets into the wheel. Later
# versions are tested with this one's ledger and lake, so those must have been recorded.
release: $(READY)  ## the wheel of what is committed, and its notes from CHANGELOG.md, in dist/
	@rm -rf dist && mkdir -p dist/source && git archive HEAD | tar -x -C dist/source
	@$(BIN)/uv build --quiet --wheel --no-build-isolation --python $(BIN)/python --out-dir dist dist/source
	@version=$$(ls dist/*.whl | cut -d- -f2); \
	awk -v version="$$version" '/^## / { on = $$2 == version } on' dist/source/CHANGELOG.md > dist/NOTES.md; \
	test -s dist/NOTES.md || { \
	  echo "CHANGELOG.md has no section for this version" >&2; exit 2; }; \
	test -d "dist/source/tests/upgrade/$$version" || { \
	  echo "Record this version, and commit what that writes: $(BIN)/python -m tests.upgrade" >&2; exit 2; }
	@rm -rf dist/source
	@ls dist/*

LOCK := uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-strip-extras --custom-compile-command 'make lock'
RUNS_WITH := connect hive notify openlineage

lock: $(READY)  ## renew both locks from pyproject.toml: what runs need, and what developers need
	@$(BIN)/$(LOCK) --upgrade --all-extras --output-file requirements-dev.lock
	@$(BIN)/$(LOCK) $(addprefix --extra ,$(RUNS_WITH)) --constraint requirements-dev.lock \
	  --output-file requirements.lock
