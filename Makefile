# Everything a newcomer needs: Python 3.11+ and make. The rest comes from PyPI, into .venv.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
MINUTES ?= 2

.DEFAULT_GOAL := help
.PHONY: help up test check fix golden docs bench chaos services lock clean

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | \
	  while IFS="$$(printf '\t')" read -r name text; do printf '  make %-8s %s\n' "$$name" "$$text"; done

up: $(INSTALLED) ## Run the system on this machine (flags: ARGS="--port 9001 --dialect ceph")
	@exec $(BIN)/bucketwire up $(ARGS)

test: $(INSTALLED) ## Run all tests (some of them: ARGS="tests/unit -k rule")
	$(BIN)/python -m pytest $(ARGS)

check: $(INSTALLED) ## Lint, types, import contracts, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m docs.generate --check

fix: $(INSTALLED) ## Format the code and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

golden: $(INSTALLED) ## Write the golden files anew: read the difference before you commit
	cd tests && ../$(BIN)/python -m golden.cases && ../$(BIN)/python -m golden.schemas

docs: $(INSTALLED) ## Write docs/reference anew from the code
	$(BIN)/python -m docs.generate

bench: $(INSTALLED) ## Measure latency and throughput on this machine
	PYTHONPATH=tests $(BIN)/python -m bench $(ARGS)

chaos: $(INSTALLED) ## Break things on purpose for MINUTES, and look for lost events (SEED=n repeats a run)
	PYTHONPATH=tests $(BIN)/python -m chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(ARGS)

services: ## Install the servers that the tests start: PostgreSQL, RabbitMQ (Debian), Kafka (Maven)
	@if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null; then \
	  echo "PostgreSQL is here already"; \
	elif command -v apt-get >/dev/null; then \
	  echo "Installing the Debian package postgresql"; \
	  run=; test "$$(id -u)" = 0 || run=sudo; \
	  $$run apt-get update -qq && $$run apt-get install -y -qq --no-install-recommends postgresql; \
	else \
	  echo "Install PostgreSQL 14 or newer, with initdb on the PATH"; exit 1; \
	fi
	@if command -v rabbitmq-server >/dev/null || ls /usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server >/dev/null 2>&1; then \
	  echo "RabbitMQ is here already"; \
	elif command -v apt-get >/dev/null; then \
	  echo "Installing the Debian package rabbitmq-server"; \
	  run=; test "$$(id -u)" = 0 || run=sudo; \
	  $$run apt-get update -qq && $$run apt-get install -y -qq --no-install-recommends rabbitmq-server; \
	else \
	  echo "Install RabbitMQ 3.10 or newer, with rabbitmq-server and epmd on the PATH"; exit 1; \
	fi
	@tests/services/kafka/fetch
	@if ls "$$(gcloud info --format='value(installation.sdk_root)' 2>/dev/null)/platform/pubsub-emulator" >/dev/null 2>&1; then \
	  echo "The Pub/Sub emulator is here already"; \
	else \
	  echo "For the tests of Pub/Sub: gcloud components install pubsub-emulator"; \
	fi

lock: $(INSTALLED) ## Choose newer versions of all dependencies
	$(BIN)/uv pip compile --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
	  --upgrade --quiet pyproject.toml --all-extras --group dev -o requirements.lock

clean: ## Remove the environment and what tools have left
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Bucketwire needs Python 3.11 or newer; name one with: make PYTHON=python3.12 up"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || \
	  { echo "This Python has no venv module: install python3-venv, or name another with PYTHON="; exit 1; }
	@echo "Installing into .venv (about two minutes, once)"
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check "$$(sed -n 's/^\(uv==[^ ]*\).*/\1/p' requirements.lock)"
	@$(BIN)/uv pip sync --quiet --compile-bytecode --require-hashes requirements.lock
	@$(BIN)/uv pip install --quiet --no-deps --editable .
	@$(BIN)/python -m compileall -q src
	@$(BIN)/python -m bucketwire.pipeline.archive
	@touch $@
