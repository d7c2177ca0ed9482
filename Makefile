# Begin with `make demo`, `make demo-shop` or `make test`. All do the set-up; `make setup` does it alone.

PYTHON ?= python3
QTT_CORPUS ?= ../shared/qtt
RUN := .venv/bin/python
PYTEST := $(RUN) -m pytest
JOBS ?= 2
# More than cores: a test often waits for a broker or for Spark.
SERVERS ?= 3
SESSIONS ?= 2
# Of unit tests: more than cores, as many of them wait for threads, sockets and processes.
PROCESSES ?= 4
# Hashes for every platform and Python; no index is named, so any mirror serves.
LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	--no-annotate -q

# Tests are compiled once and kept, also where the surroundings forbid it: else each worker and
# each process that a test starts would compile everything anew.
export PYTHONDONTWRITEBYTECODE =
RANDOM := $(PYTHON) -c 'import os; print(os.urandom(32).hex())'

.DEFAULT_GOAL := help
.PHONY: help setup secrets demo demo-shop test check fast fmt lint types layers unit golden chains spark kafka console qtt bench bench-scale docs docs-tables lock \
	proof-fresh proof-crash proof-scale proof-soak proof-qtt proof-fuzz proof-upgrades \
	proof-cuts proof-chains proof-streams proof-clients

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: ## environment, locked packages, jars; seconds when nothing changed
	@$(PYTHON) server/bootstrap.py

# Whose user a container has may read them; on this machine nobody but the owner enters their folder.
secrets: ## passwords for docker compose, made once
	@mkdir -p -m 700 secrets
	@umask 022; cd secrets; \
	test -s postgres_password || $(RANDOM) > postgres_password; \
	test -s grafana_password || $(RANDOM) > grafana_password; \
	test -s spark.properties || printf '%s\n' spark.authenticate=true \
	  spark.network.crypto.enabled=true "spark.authenticate.secret=$$($(RANDOM))" > spark.properties

demo: setup ## the main job on real data
	@.venv/bin/ksql demo

demo-shop: setup ## queries over the backlog of a shop, each result compared with pandas
	@.venv/bin/ksql demo-shop

# Run side by side: steps that would leave a core idle, as a Spark session does while it plans.
test: setup ## everything that CI runs
	@$(MAKE) --no-print-directory -j2 unit lint types layers docs
	@$(MAKE) --no-print-directory -j3 golden chains console
	@$(MAKE) --no-print-directory kafka
	@$(MAKE) --no-print-directory -j2 qtt spark

check: setup ## the fast part: no JVM
	@$(MAKE) --no-print-directory -j2 fast lint types layers docs

fast: setup
	@KSQL_QUICK_TESTS=1 $(RUN) -m tests.parallel -j $(PROCESSES) tests/unit tests/golden

fmt: setup ## format and fix what can be fixed
	@$(RUN) -m ruff format .
	@$(RUN) -m ruff check --fix .

lint: setup ## ruff; phrases and names to avoid
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m tests.prose
	@$(RUN) -m tests.identifiers

types: setup ## mypy
	@$(RUN) -m mypy

layers: setup ## who may import whom
	@.venv/bin/lint-imports --no-logo

docs: setup ## the documents as a site in build/docs; a broken link fails
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict

docs-tables: setup ## write properties and functions into the documents
	@$(RUN) -m docs.tools.tables

unit: setup ## no JVM
	$(RUN) -m tests.parallel -j $(PROCESSES) tests/unit

golden: setup ## statement and expected text
	$(PYTEST) -q tests/golden

chains: setup ## CHAINS random chains of queries over several partitions, in memory: equal in all batches, in order
	$(RUN) -m tests.chains --runs $(CHAINS) --jobs $(JOBS)

spark: setup ## SESSIONS of Spark side by side
	$(PYTEST) -q -n $(SESSIONS) --dist loadfile --no-loadscope-reorder -m "not proof" tests/spark

kafka: setup ## broker, server, CLI, replay
	$(PYTEST) -q -n $(SERVERS) --dist loadfile --no-loadscope-reorder -m "not proof" tests/kafka

# Without a browser its tests are left out, and say so.
console: setup ## the web console in Chromium, on a real server
	$(PYTEST) -q -n $(SERVERS) --dist loadfile tests/console

POINTS ?= 600

proof-crash: setup ## kills at every write of statements and batches; restarts, bad surroundings, standalone: long
	$(PYTEST) -q -m proof tests/spark
	$(PYTEST) -q -m proof tests/kafka
	$(RUN) -m tests.crash
	$(RUN) -m tests.crash.switches
	$(RUN) -m tests.crash.rebuilds --most $(POINTS)
	$(RUN) -m tests.crash.restart

proof-scale: setup ## queries of every kind on two Spark workers, killed one at a time: about 10 minutes
	$(PYTEST) -q -m proof tests/kafka/test_standalone.py tests/kafka/test_scale.py

MINUTES ?= 30

proof-soak: setup ## load, kills and replacements for MINUTES, compared with a model
	$(RUN) -m tests.crash.soak --minutes $(MINUTES)

# The corpus is not part of the project; without it only our own cases run.
QTT_PATHS := qtt/cases $(wildcard $(QTT_CORPUS))
QTT_SAMPLE ?= 90
PAIRS ?= 3600
STORIES ?= 600
UPGRADE_CHAINS ?= 40
RUNS ?= 1000
# `make test` runs fewer of the random chains; `make proof-chains` runs them all.
CHAINS ?= 300

qtt: setup ## ksqlDB's test files: local driver in full, Spark a sample
	$(RUN) -m qtt --driver local --jobs $(JOBS) $(QTT_PATHS)
	$(RUN) -m qtt --driver spark --jobs $(JOBS) --sample $(QTT_SAMPLE) $(QTT_PATHS)

proof-qtt: setup ## every test file on Spark, REST cases on a server: about 45 minutes
	$(RUN) -m qtt --driver spark --jobs $(JOBS) $(QTT_PATHS)

proof-upgrades: setup ## PAIRS replacements at random against a model, STORIES of tables and as many of their readers, in memory; UPGRADE_CHAINS chains on Spark
	$(RUN) -m tests.upgrades --pairs $(PAIRS) --stories $(STORIES)
	KSQL_TEST_UPGRADE_CHAINS=$(UPGRADE_CHAINS) $(PYTEST) -q -m proof tests/kafka/test_upgrade_chains.py tests/kafka/test_linked_tables.py

proof-cuts: setup ## the same records in other micro-batches: RUNS random cases in memory, 50 on Spark
	$(RUN) -m tests.cuts --runs $(RUNS)
	$(PYTEST) -q -m proof tests/spark/test_cuts.py

proof-chains: setup ## RUNS such chains, 60 of them on a server that is killed, and long backlogs, up to a million records: an hour or more
	$(RUN) -m tests.chains --runs $(RUNS) --jobs $(JOBS)
	$(PYTEST) -q -m proof tests/kafka/test_random_chains.py tests/kafka/test_long_chains.py

INPUTS ?= 2100
SPREAD ?= 1400

proof-streams: setup ## INPUTS generated inputs of all stateful shapes, and SPREAD over several partitions, compared with Kafka Streams; some on Spark
	$(RUN) -m tests.streams --inputs $(INPUTS) --spread $(SPREAD)
	$(PYTEST) -q -m proof tests/spark/test_streams.py

proof-fuzz: setup ## random and broken statements, records, requests, 10 minutes each
	$(RUN) -m tests.fuzz

proof-clients: setup ## clients of ksqlDB from npm, PyPI and in Go take a tour of a server
	$(RUN) -m tests.clients

CURVES ?=
MOST ?= 0

bench: setup ## the numbers
	$(RUN) -m tests.bench

bench-scale: setup ## cost per record as keys, values, queries and workers grow: an hour (CURVES= for some, MOST= for an end)
	$(RUN) -m tests.bench scale --most $(MOST) $(CURVES)

proof-fresh: ## a clone with empty HOME and caches: set-up twice, demo, tests
	tests/fresh.sh demo test

lock: setup ## for maintainers: resolve the packages and jars anew
	uv pip compile requirements/build.in $(LOCK) -o requirements/build.lock
	uv pip compile pyproject.toml --all-extras $(LOCK) -o requirements/dev.lock
	uv pip compile pyproject.toml --extra demo $(LOCK) -c requirements/dev.lock -o requirements/runtime.lock
	$(RUN) -m server.tools.relock
