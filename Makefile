# Few verbs. Each sets up what it needs in .venv; python3 with venv and pip is all that is assumed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Half of the suite waits for something, so more of it may run at once than there are cores.
WORKERS ?= 4

# Hundreds of tests start an interpreter; none of them should compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: try test lint types unit bench bench-recovery soak docs generate clean

try: $(VENV)/.try
	$(BIN)/amends try

test: lint types unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m "not soak" -n $(WORKERS) --dist worksteal

soak: $(VENV)/.dev $(VENV)/.tools
	$(BIN)/python -m pytest -q -m soak --timeout=3600

bench: $(VENV)/.bench
	$(BIN)/python -m bench

bench-recovery: $(VENV)/.bench
	$(BIN)/python -m bench.recovery

# Tables are the source; what is written from them is checked for drift by the tests.
generate: $(VENV)/.dev
	$(BIN)/python scripts/generate_errors.py
	$(BIN)/python scripts/generate_docs.py

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip

$(VENV)/.try: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q -e '.[try]'
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q -e '.[dev]'
	@touch $@ $(VENV)/.try

$(VENV)/.tools: $(VENV)/bin/python scripts/fetch_tools.py
	$(BIN)/python scripts/fetch_tools.py $(VENV)/tools
	@touch $@

$(VENV)/.docs: $(VENV)/.dev pyproject.toml
	$(BIN)/python -m pip install -q -e '.[docs]'
	@touch $@

$(VENV)/.bench: $(VENV)/.dev pyproject.toml
	$(BIN)/python -m pip install -q -e '.[bench]'
	@touch $@
