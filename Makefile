# `make run` serves the site on this machine, `make test` checks everything; both install first.

PYTHON ?= python3
UPGRADE ?=

BIN := .venv/bin
INSTALLED := .venv/.installed

DYNOXIDE_VERSION := 1.2.1
OS := $(patsubst Linux,linux,$(patsubst Darwin,darwin,$(shell uname -s)))
CPU := $(patsubst x86_64,x64,$(patsubst aarch64,arm64,$(shell uname -m)))
DYNOXIDE := @dynoxide/$(OS)-$(CPU)
ENGINE := .venv/node_modules/$(DYNOXIDE)/dynoxide

# The django-stubs plugin imports the settings, which refuse to load without a key.
MYPY_ENV := DJANGO_DEBUG=on DJANGO_SECRET_KEY=read-by-the-type-checker-only

.PHONY: run test test-library coverage test-slow torture engines bench scale lint messages install lock
.DELETE_ON_ERROR:

run: install .env
	@exec $(BIN)/python manage.py runserver 127.0.0.1:$(or $(PORT),8000)

# The suite reads 170 files of tests in each worker, and starts some hundred programs: where nothing
# compiled may be kept, all of it is compiled each time.
unexport PYTHONDONTWRITEBYTECODE

# More workers than cores, as some tests wait; but each of them reads all tests, for ten seconds.
WORKERS := -n 3 --dist worksteal

test: lint
	$(BIN)/pytest $(WORKERS) -m "not slow"

# Builds the wheel, installs it from the package index as pip is configured, and uses it alone.
test-library: install
	$(BIN)/pytest tests/project/test_library.py

# Apart, as tracing takes half as long again.
coverage: install
	$(BIN)/pytest $(WORKERS) -m "not slow" --cov

test-slow: install
	STRESS=full $(BIN)/pytest -m "stress or slow"

# Faults, kills and a checker of histories, for so many seconds; a SEED gives the same faults again.
torture: install
	$(BIN)/python -m tests.torture --seconds $(or $(SECONDS),1800) $(if $(SEED),--seed $(SEED))

# The suite on the other engines, whose known faults the tests name, but for what asks no engine for
# anything (tests/conftest.py); TESTS are some of it.
ENGINES ?= ministack moto
# These engines are Python too: a worker and its engine take turns, and cores were idle with three.
engines: WORKERS := -n 5 --dist worksteal
engines: install
	for engine in $(ENGINES); do \
		echo "== engine: $$engine"; \
		$(BIN)/pytest $(WORKERS) --engine=$$engine \
			-m "not stress and not browser and not slow" $(TESTS) || exit 1; \
	done

# Measures what each operation takes, simulates the hot spots, and writes docs/scale.md.
scale: install
	$(BIN)/python -m benchmarks.scale docs/scale.md

# Every table of benchmarks/README.md, in ROUNDS rounds; on a machine that has nothing else to do.
ROUNDS ?= 5
bench: install
	for question in counters invoices locks registration client uploads servers pages; do \
		$(BIN)/python -m benchmarks.$$question $(ROUNDS) || exit 1; \
	done

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MYPY_ENV) $(BIN)/mypy
	$(BIN)/lint-imports

# Renews the catalogues under locale/ from the sources: what is new there waits to be translated.
messages: install
	$(BIN)/python -m tests.catalogue

# With uv on PATH. Keeps what is locked; `make lock UPGRADE=--upgrade` renews it. Production's lock has
# the versions of development's.
LOCK := uv pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" pyproject.toml
lock:
	$(LOCK) $(UPGRADE) --group site --group test --group lint --output-file requirements-dev.lock
	$(LOCK) --group site --constraint requirements-dev.lock --output-file requirements.lock

install: $(INSTALLED) $(ENGINE)

# --clear, because a python3 that was upgraded away leaves a .venv that no longer starts.
$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "This needs Python 3.11, 3.12 or 3.13; there is no $(PYTHON)." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' \
		|| { echo "This needs Python 3.11, 3.12 or 3.13; $(PYTHON) is $$($(PYTHON) -V 2>&1)." >&2; exit 1; }
	@$(PYTHON) -m venv --clear .venv || { rm -rf .venv; exit 1; }

# Everything from outside is checked against its hash. The checkout itself has none, so it is a
# second step that fetches nothing: no dependencies, and the setuptools just installed builds it.
$(INSTALLED): pyproject.toml requirements-dev.lock | $(BIN)/python
	@echo "Installing into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index --editable .
	@touch $@

# Not every platform has a binary and not every machine has npm: ministack is installed anyway.
# A failed install is tried again next time, so it must fail fast.
$(ENGINE): | $(BIN)/python
	@{ command -v npm >/dev/null && npm install --prefix .venv --no-save --no-audit --no-fund \
		--silent --fetch-retries=1 --fetch-retry-mintimeout=1000 $(DYNOXIDE)@$(DYNOXIDE_VERSION) >/dev/null 2>&1; } \
		|| echo "No durable engine ($(DYNOXIDE) from npm): ministack stands in and keeps nothing." >&2

# Readable by its owner alone, and whole or not there.
.env: | $(BIN)/python
	@umask 077 && $(BIN)/python -c 'import secrets; print("DJANGO_DEBUG=on\nDJANGO_SECRET_KEY=" + secrets.token_urlsafe(50))' > .env.new && mv .env.new .env
