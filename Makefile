# `make` lists what there is. Everything runs in .venv, which `make setup` makes from a Python 3.11 or later alone.

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,$(if $(shell $(p) -c \
	'import sys; print(1) if sys.version_info >= (3, 11) else 0' 2>/dev/null | grep 1),$(p))) python3)
VENV ?= .venv
# What targets that run something need first; `make SETUP= unit` leaves it out where .venv was made otherwise.
SETUP ?= setup

# The environment of `make test-python`, one for each Python.
OTHER = $(VENV)-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

BIN := $(VENV)/bin
PY := $(BIN)/python
SOURCES := hydro_core assets orchestration tests tools benchmarks
PRESENT = $(wildcard $(SOURCES))
PYTEST := $(PY) -m pytest
# Laws try random programs, and tests of object stores begin anew at each request.
QUICK := --ignore=tests/laws --ignore=tests/unit/storage tests

.DEFAULT_GOAL := help
.PHONY: help setup demo fmt lint unit test test-python second-lane third-lane test-all golden docs screenshots bench bench-tick bench-deployments dev lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## the environment in .venv: packages, a Java if there is none, the Delta jars; a moment when it is there
	@$(PYTHON) tools/bootstrap.py --venv $(VENV)

demo: $(SETUP) ## the first days of the NYC flights of 2013 through Dagster, Spark and Delta
	@$(BIN)/hydrotick demo

fmt: $(SETUP) ## formats the code
	@$(PY) -m ruff format $(PRESENT)
	@$(PY) -m ruff check --fix --quiet $(PRESENT) || true

lint: $(SETUP) ## format, ruff, mypy, import contracts, sizes, words, and that generated pages are current
	@$(PY) -m ruff format --check --quiet $(PRESENT) || { echo "make fmt formats these:"; \
		$(PY) -m ruff format --check $(PRESENT); exit 1; }
	@$(PY) -m ruff check --quiet $(PRESENT)
	@$(PY) -m mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache > .lint-imports.log || { cat .lint-imports.log; exit 1; }
	@rm -f .lint-imports.log
	@$(PY) tools/check_sizes.py $(PRESENT)
	@$(PY) tools/check_words.py
	@if [ -f tools/docs.py ]; then $(PY) tools/docs.py --check; fi

unit: $(SETUP) ## the tests that need neither Spark nor Dagster, but for laws and object stores: under a minute
	@$(PYTEST) -q -m "not spark and not dagster and not wheel and not slow" $(QUICK)

test-python: ## the unit tests under another Python: make test-python PYTHON=python3.13
	@$(PYTHON) tools/bootstrap.py --venv $(OTHER) --without-spark
	@$(OTHER)/bin/python -m pytest -q -m "not spark and not dagster and not wheel and not slow" \
		-p no:cacheprovider $(QUICK)

# By this name, since `make -n` runs what names $(MAKE) itself: it would start the tests, not show them.
LANE = $(MAKE) -s SETUP=

# Two lanes for two cores, and one of services that mostly wait.
test: $(SETUP) ## lint and every test but the slow ones; what CI runs
	@second=$$(mktemp); third=$$(mktemp); \
	$(LANE) second-lane >$$second 2>&1 & beside=$$!; \
	$(LANE) third-lane >$$third 2>&1 & services=$$!; \
	$(PYTEST) -q -m "spark and not dagster and not vectors and not slow" tests; status=$$?; \
	wait $$services || status=1; \
	wait $$beside || status=1; \
	cat $$third $$second; rm -f $$second $$third; exit $$status

second-lane:
	@status=0; \
	$(LANE) lint || status=1; \
	$(PYTEST) -q -m "(dagster or vectors) and not slow" tests || status=1; \
	$(PYTEST) -q -m "not spark and not dagster and not wheel and not slow" tests || status=1; \
	exit $$status

third-lane:
	@$(PYTEST) -q -m "wheel and not slow" tests

test-all: $(if $(PART),$(SETUP),lint) ## test, and the long crash, fuzz and soak runs; PART=3/8: the third of eight parts of the long ones
	@$(PYTEST) -q $(if $(PART),-m slow --part $(PART)) tests

golden: $(SETUP) ## rewrites the expected files of tests/golden, and what pages show; read the difference like code
	@$(PYTEST) -q -m "not spark and not dagster and not slow" tests/golden tests/pages tests/unit --update-golden
	@$(PYTEST) -q -m "refuses and (spark or dagster)" tests --update-golden

docs: $(SETUP) ## writes the pages that are generated from the tables
	@$(PY) tools/docs.py

screenshots: $(SETUP) ## takes the pictures of docs/images, with a Chromium
	@$(PY) tools/screenshots.py

bench: $(SETUP) ## every benchmark
	@$(PY) -m benchmarks

bench-tick: $(SETUP) ## a small tick beside the same job by hand in PySpark and Delta, and their ratio
	@$(PY) -m benchmarks.tick

bench-deployments: $(SETUP) ## loading deployed flows, and what changing a program costs after a year of ticks
	@$(PY) -m benchmarks definitions deployments

dev: $(SETUP) ## the Dagster UI, with its daemon
	@$(BIN)/hydrotick dev

lock: $(SETUP) ## renews requirements/*.txt within pyproject.toml
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-strip-extras \
		--no-emit-index-url requirements/uv.in -o requirements/uv.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-strip-extras \
		--no-emit-index-url requirements/build.in -o requirements/build.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-strip-extras \
		--no-emit-index-url --extra dev pyproject.toml -o requirements/lock.txt

clean: ## removes what runs and tests left, and keeps .venv and your data
	@rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache \
		spark-warehouse metastore_db derby.log .lint-imports.log
	@find $(PRESENT) -name __pycache__ -type d -prune -exec rm -rf {} +
