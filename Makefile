# The whole vocabulary: demo, test, check, docs, bench, bench-scale (and clean).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests run on all cores; BLAS threads would only fight with them for the same ones. With
# SCIPY_ARRAY_API scikit-learn lets arrays of other libraries through.
JOBS ?= auto

.PHONY: demo test check docs bench bench-scale format clean

demo: $(VENV)/.demo
	@$(BIN)/robustnmf demo --out demo

test: $(VENV)/.dev
	SCIPY_ARRAY_API=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS)

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/batch.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/solvers.py
	@$(BIN)/python benchmarks/targets.py
	$(BIN)/python benchmarks/starts.py
	$(BIN)/python benchmarks/exactness.py
	$(BIN)/python benchmarks/product.py
	$(BIN)/python benchmarks/contamination.py
	$(BIN)/python benchmarks/cost.py
	$(BIN)/python benchmarks/missing.py
	$(BIN)/python benchmarks/sparse_rows.py

bench-scale: $(VENV)/.bench
	$(BIN)/python benchmarks/scale.py

# One stamp per set of extras, renewed when the project file changes.
$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[cli]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[dev,bench]"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) demo docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
