# Two commands: `make paper` and `make test`. Both set up .venv first, with nothing but python3, make and a package index.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: paper test bench clean

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

paper: $(VENV)/ready
	$(BIN)/steelyard paper --output paper

test: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto

bench: $(VENV)/ready
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/floor.py
	$(BIN)/python benchmarks/bank.py
	$(BIN)/python benchmarks/reader.py

clean:
	rm -rf $(VENV) paper
