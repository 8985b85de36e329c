# Two commands: `make paper` and `make test`. Both set up .venv first, with nothing but python3, make and a package index.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# A folder of LIBSVM files for `make quality` and `make scores`; without one they run on the sets inside scikit-learn.
DATA ?=

.PHONY: paper test docs bench quality scores wheel release startup clean

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# What the paper's experiments need, and no more; then everything that tests and benchmarks compare with.
$(VENV)/ready-paper: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[plot]'
	touch $@

$(VENV)/ready: $(VENV)/ready-paper
	$(PIP) -e '.[dev]'
	touch $@

$(VENV)/ready-docs: $(VENV)/ready-paper
	$(PIP) -e '.[docs]'
	touch $@

paper: $(VENV)/ready-paper
	$(BIN)/steelyard paper --output paper

# Everything is compiled before the tests, in one order: how the compiler joins functions depends on what it compiled
# before, and so do the last bits of kernels that the tests compare.
test: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/steelyard compile
	$(BIN)/python -m pytest -n auto

# The site, in docs/_build/html: warnings are errors, examples run, links are checked.
docs: $(VENV)/ready-docs
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	$(BIN)/python docs/_ext/check_links.py docs/_build/html

# Results go into benchmarks/results, and from there into docs/benchmarks.md.
BENCHES := speed floor growth auto events shuffle bank reader text startup memory modelsize weights drift repeated penalties workers
bench: $(VENV)/ready $(BENCHES:%=bench-%)
	$(BIN)/python benchmarks/page.py

bench-%: $(VENV)/ready
	$(BIN)/python benchmarks/$*.py

quality: $(VENV)/ready
	$(BIN)/python benchmarks/quality.py $(if $(DATA),--data $(DATA))
	$(BIN)/python benchmarks/page.py

scores: $(VENV)/ready
	$(BIN)/python benchmarks/scores.py $(if $(DATA),--data $(DATA))

# A wheel with compiled kernels, for this kind of machine: some minutes; a run that was stopped goes on where it was.
# `pip wheel .` makes one without them.
OBJECTS := src/steelyard/compiled/objects
wheel: $(VENV)/ready-paper
	$(BIN)/steelyard compile --output $(OBJECTS)
	rm -rf dist
	STEELYARD_OBJECTS=required $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

# What is published: the wheel and the source archive, each installed into an empty environment and tried there.
release: wheel
	$(PIP) build twine
	$(BIN)/python -m build --sdist --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/smoke.py dist/*

# All figures of a start, with the wheel in an environment of its own beside the peers of this one.
FRESH := dist/fresh
startup: $(VENV)/ready wheel
	$(PYTHON) -m venv $(FRESH)
	$(FRESH)/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	$(BIN)/python benchmarks/startup.py --python $(FRESH)/bin/python
	$(FRESH)/bin/python benchmarks/ways.py

clean:
	rm -rf $(VENV) $(OBJECTS) dist paper quality scores shards docs/_build docs/generated
