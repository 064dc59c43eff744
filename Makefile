# Everything below sets itself up: a virtual environment in .venv, made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ifeq ($(OS),Windows_NT)
  BIN := $(VENV)/Scripts
endif
STAMP := $(VENV)/.installed
# Three on two cores: tests wait for processes and for databases.
JOBS ?= 3

# Public evaluation data, where it is at hand; see docs/reference/evaluation.md.
ifneq ($(wildcard ../shared/data/README.md),)
  export SMARA_EVAL_DATA ?= $(abspath ../shared/data)
endif

# Files elsewhere that have a large count.
LARGE = $(sort $(wildcard tests/contract/test_*state_machine.py) \
  $(shell grep -rl --include='test_*.py' faults.sizes tests/contract tests/stories tests/surfaces tests/unit))

.PHONY: help man demo docs test browser conformance check licenses format wheel bench walk bench-peers eval faults lock clean

help: ## show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev --constraint constraints.txt
	@touch $@

demo: $(STAMP) ## the story of Smara in a terminal, in well under a minute
	@$(BIN)/smara demo

docs: $(STAMP) ## the documentation as a site in build/site, searchable, without a network
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(BIN)/mkdocs build
	@echo "Read it:  $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000"

test: $(STAMP) ## every test, in about 14 minutes on 2 cores
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -r fEs --durations 15

browser: $(STAMP) ## every page and form of the panel in Chromium: languages, themes, widths, axe
	SMARA_BROWSER=all $(BIN)/python -m pytest tests/browser -r fEs --durations 15

conformance: $(STAMP) ## the frameworks' own tests against our adapters; fetches them at pinned versions
	$(BIN)/python -m tests.conformance
	$(BIN)/python -m tests.conformance.mem0_client

check: $(STAMP) ## ruff, mypy, and the names and English of the source
	$(BIN)/ruff check .
	$(BIN)/ruff format --check src evals bench tests
	$(BIN)/mypy
	$(BIN)/python -m tests.house_lint
	$(BIN)/python -m tests.licenses > /dev/null

man: $(STAMP) ## the manual page, made from the commands: dist/smara.1
	@mkdir -p dist && $(BIN)/smara man > dist/smara.1

licenses: $(STAMP) ## the license of every package that an installation brings
	@$(BIN)/python -m tests.licenses

format: $(STAMP) ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format src evals bench tests

faults: $(STAMP) ## the fault tests at their large counts, in an hour or two; on the same commit it goes on where it was
	SMARA_FAULTS=large $(BIN)/python -m pytest -p tests.resume -vv -n $(JOBS) --dist worksteal --durations 30 \
	  tests/faults tests/migrations $(LARGE)
	SMARA_TEST_POOLER=1 $(BIN)/python -m pytest -p tests.resume -q -n $(JOBS) --dist worksteal -m postgres tests/contract
	@rm -rf .faults

wheel: $(STAMP) ## dist/smara-….whl, for the image of deploy/
	$(BIN)/pip wheel -q --no-deps --wheel-dir dist .

bench: $(STAMP) ## speed, as ratios to a bare baseline in the same run
	SMARA_TEST_DURABLE=1 $(BIN)/python -m tests.with_postgres $(BIN)/python -m bench

walk: $(STAMP) ## the modules that a call visits, and the share of calls that leave their module
	$(BIN)/python -m bench.walk

bench-peers: $(STAMP) ## Smara beside other local stores, each in an environment of its own, made by uv
	$(BIN)/python -m bench peers --out .bench/peers

eval: $(STAMP) ## retrieval quality on the evaluation sets, with baselines
	$(BIN)/python -m tests.with_postgres $(BIN)/python -m evals --output .eval/report.md

lock: ## take the newest release of every package that the tests use, and write them down
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager --editable . --group dev
	@(echo "# The packages that make check and make test run with: a release of another project must not"; \
	  echo "# turn a green tree red. Written by make lock."; \
	  $(BIN)/python -m pip freeze --exclude-editable) > constraints.txt

clean: ## remove what was built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .bench .eval .conformance
