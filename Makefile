# Everything runs in .venv, which the first target that needs it creates.
PYTHON ?= python3
VENV := .venv
# PyTorch is large, so networks are tested only where it is asked for: make test TORCH=torch==2.13.0
TORCH ?=
BIN := $(VENV)/bin


.PHONY: help demo test system check format bench soak docs clean

help:  ## what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/.ready: pyproject.toml requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	$(if $(TORCH),$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH))
	$(BIN)/python -m compileall -q src
	touch $@

demo: $(VENV)/.ready  ## label, train, compare, learn a measure, aggregate: the whole loop, ending in a report
	$(BIN)/firstpage demo

test: $(VENV)/.ready system  ## all tests (real data too, where FIRSTPAGE_DATA or ../shared/data is there)
	$(BIN)/python -m pytest -n auto

system:  # a browser and a database server for the tests, where they may be installed
	@sh tests/system.sh

check: $(VENV)/.ready system  ## format, lint, types, import contract, tests
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile
	$(BIN)/python -m pytest -n auto

bench: $(VENV)/.ready  ## measure against the peers; prints tables of ratios
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	$(BIN)/python benchmarks/evaluate.py
	$(BIN)/python benchmarks/parse.py
	$(BIN)/python benchmarks/aggregate.py
	$(BIN)/python benchmarks/train.py
	$(BIN)/python benchmarks/boost.py
	$(BIN)/python benchmarks/svm.py
	$(BIN)/python benchmarks/choose.py
	$(BIN)/python benchmarks/dcglearn.py
	$(BIN)/python benchmarks/label.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/serve.py

soak: $(VENV)/.ready  ## long fuzzing of the readers, and killing the labelling server, by hand
	$(BIN)/python tests/soak/fuzz_readers.py
	$(BIN)/python tests/soak/kill_server.py --kills 200 --database sqlite
	$(BIN)/python tests/soak/kill_server.py --kills 200 --database postgres

docs: $(VENV)/.ready  ## write the generated pages of docs/
	$(BIN)/python docs/generate.py

clean:  ## remove the environment and everything made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
