# `make` alone lists the targets.

PYTHON ?= python3
UPGRADE ?=

BIN := .venv/bin
INSTALLED := .venv/.installed
COMPILED := .venv/.compiled

DYNOXIDE_VERSION := 1.2.1
OS := $(patsubst Linux,linux,$(patsubst Darwin,darwin,$(shell uname -s)))
CPU := $(patsubst x86_64,x64,$(patsubst aarch64,arm64,$(shell uname -m)))
DYNOXIDE := @dynoxide/$(OS)-$(CPU)
ENGINE := .venv/node_modules/$(DYNOXIDE)/dynoxide

# The django-stubs plugin imports the settings, which refuse to load without a key.
MYPY_ENV := DJANGO_DEBUG=on DJANGO_SECRET_KEY=read-by-the-type-checker-only

# The types of an app that uses the library. It has the settings of an example.
APP_ENV := PYTHONPATH=../../examples/admin MYPYPATH=../../examples/admin DJANGO_SETTINGS_MODULE=club.settings

.PHONY: help run test tested test-library lambda coverage test-slow torture engines aws bench scale lint size messages samples screenshots docs dist install lock
.DELETE_ON_ERROR:

# Each target with a comment after ##.
help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

run: install .env ## serve the site on http://127.0.0.1:8000/ (PORT=…), with a local DynamoDB
	@exec $(BIN)/python manage.py runserver 127.0.0.1:$(or $(PORT),8000)

# Each worker imports all tests, and the tests start about a hundred programs. Without compiled files
# each would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

# Some tests wait, so five workers use two cores better than two. Each imports all tests in four seconds.
WORKERS := -n 5 --dist worksteal

# mypy runs beside the tests, which wait now and then.
test: install ## lint and test, as CI does first
	@$(MAKE) --no-print-directory --jobs 2 --keep-going lint tested

tested: install $(COMPILED)
	$(BIN)/pytest $(WORKERS) -m "not slow"

# After a change, one process compiles the tests, so that not each worker has to. The test run itself
# reports what cannot be imported.
$(COMPILED): $(shell find tests -name '*.py') | $(INSTALLED)
	@$(BIN)/pytest --collect-only --quiet >/dev/null 2>&1 || true
	@touch $@

# Builds the wheel, installs it with pip into empty environments, runs the tutorial there, and the tests
# of the library on each Python of this machine. Builds and starts the site as its container does.
test-library: install ## test the wheel in empty environments, on each Python that is here
	$(BIN)/pytest -m "not stress" tests/project/test_library.py tests/project/test_containers.py

# The zips of the AWS Lambda function; needs no compiler. See docs/lambda.md.
lambda: install ## write the zips of the AWS Lambda function into dist/
	$(BIN)/python deploy/lambda_zip.py --arch arm64 dist/lambda-arm64.zip
	$(BIN)/python deploy/lambda_zip.py --arch x86_64 dist/lambda-x86_64.zip

# Not part of `make test`, because tracing takes half as long again.
coverage: install ## run the tests and count branches
	$(BIN)/pytest $(WORKERS) -m "not slow" --cov

test-slow: install ## run large races and other long tests
	STRESS=full $(BIN)/pytest -m "stress or slow"

# Random faults and kills for SECONDS, then a check of all answers. A SEED repeats the faults.
torture: install ## inject random faults for half an hour (SECONDS=…, SEED=…)
	$(BIN)/python -m tests.torture --seconds $(or $(SECONDS),1800) $(if $(SEED),--seed $(SEED))

# The tests that need an engine (tests/conftest.py), on the other engines. Tests name an engine's known
# faults. TESTS selects some.
ENGINES ?= ministack moto
engines: install ## run the tests on ministack and moto (TESTS=…)
	for engine in $(ENGINES); do \
		echo "== engine: $$engine"; \
		$(BIN)/pytest $(WORKERS) --engine=$$engine \
			-m "not stress and not browser and not slow" $(TESTS) || exit 1; \
	done

# At most 200 tests and 20,000 requests, on tables with the prefix, which are deleted at the end. Asks first.
aws: install ## test the library on real tables of your AWS account (PREFIX=…)
	@$(BIN)/python -m tests.aws "$(PREFIX)"

# Measures what each operation costs, simulates hot keys, and writes docs/scale.md.
scale: install ## measure what operations cost, and write docs/scale.md
	$(BIN)/python -m benchmarks.scale docs/scale.md

# The tables of benchmarks/README.md, in ROUNDS rounds. Use an idle machine.
ROUNDS ?= 5
bench: install ## run the benchmarks (ROUNDS=…)
	for question in counters invoices typesetting locks registration client uploads servers pages \
			distance crowds profiles tasks coldstart; do \
		$(BIN)/python -m benchmarks.$$question $(ROUNDS) || exit 1; \
	done

lint: install ## check style, types and imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MYPY_ENV) $(BIN)/mypy
	cd tests/library && $(APP_ENV) ../../$(BIN)/mypy --cache-dir ../../.mypy_cache/apps documented.py
	$(BIN)/lint-imports

# The product's lines of code, by package.
size: install ## count the product's lines of code, by package
	@$(BIN)/python -m tests.sizes

# Updates the catalogues from the sources; new texts wait for a translation.
messages: install ## update and compile the translations
	$(BIN)/python -m tests.catalogue

# Writes the PDFs of docs/samples/.
samples: install ## write the PDFs of docs/samples/
	$(MYPY_ENV) DJANGO_SETTINGS_MODULE=project.settings $(BIN)/python -m tests.sample_invoices

# Needs Chromium.
screenshots: install ## take the pictures of docs/screenshots.md
	SCREENSHOTS=$(CURDIR)/docs/images $(BIN)/pytest -q -n 0 tests/browser/test_screenshots.py

docs: install ## make a site of the docs in build/docs/
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env docs build/docs

# What a release uploads. See CONTRIBUTING.md.
dist: install ## build the wheel and the source archive into dist/, and check them
	@rm -rf dist/*.whl dist/*.tar.gz
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz

# Needs uv on PATH. Keeps the locked versions; `make lock UPGRADE=--upgrade` renews them. Both files lock
# the same versions.
LOCK := uv pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes \
	--no-strip-extras --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" pyproject.toml
lock: ## lock the dependencies (UPGRADE=--upgrade renews them); needs uv
	$(LOCK) $(UPGRADE) --group site --group test --group lint --group docs --output-file requirements-dev.lock
	$(LOCK) --group site --constraint requirements-dev.lock --output-file requirements.lock

install: $(INSTALLED) $(ENGINE) ## install everything into .venv

# --clear, because a .venv does not start after its python3 was upgraded.
$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "This needs Python 3.11 or later; there is no $(PYTHON)." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "This needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) -V 2>&1)." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info >= (3, 15))' \
		|| echo "$$($(PYTHON) -V 2>&1) is newer than Python 3.14, the latest that was tried." >&2
	@echo "Creating .venv"
	@$(PYTHON) -m venv --clear .venv || { rm -rf .venv; exit 1; }

# Everything that is fetched is checked against its hash. The checkout has none, so a second step
# installs it without fetching anything.
$(INSTALLED): pyproject.toml requirements-dev.lock | $(BIN)/python
	@echo "Installing $$(grep -c '^[a-z]' requirements-dev.lock) Python packages into .venv: this takes about a minute"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index --editable .
	@touch $@

# Not every platform has a binary, nor every machine npm: ministack is always installed.
# A failed install is repeated next time, so it must fail fast.
$(ENGINE): | $(BIN)/python
	@echo "Installing the local DynamoDB, $(DYNOXIDE)"
	@{ command -v npm >/dev/null && npm install --prefix .venv --no-save --no-audit --no-fund \
		--silent --fetch-retries=1 --fetch-retry-mintimeout=1000 $(DYNOXIDE)@$(DYNOXIDE_VERSION) >/dev/null 2>&1; } \
		|| echo "npm could not install $(DYNOXIDE): ministack is used instead and keeps no data." >&2

# Readable by its owner alone; written completely or not at all.
.env: | $(BIN)/python
	@umask 077 && $(BIN)/python -c 'import secrets; print("DJANGO_DEBUG=on\nDJANGO_SECRET_KEY=" + secrets.token_urlsafe(50))' > .env.new && mv .env.new .env
