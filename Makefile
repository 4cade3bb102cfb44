# Two commands on a bare machine: `make demo` and `make test`. Each makes the environment it needs, once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check bench docs pictures clean

demo: $(READY)
	$(BIN)/cognn demo

test: check
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks

docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build

pictures: $(READY)
	$(BIN)/python tools/pictures.py

# PIP_CONSTRAINT also reaches the build environment of this package; a plain -c would not.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) dist docs/_build docs/results .mypy_cache .pytest_cache .ruff_cache .hypothesis
