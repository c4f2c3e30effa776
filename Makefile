# The whole vocabulary: demo, test, test-all, check, docs, bench, bench-scale; for those who work on it
# pictures, coverage, oldest, wheel, installed, dist, format, clean.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests run on all cores; BLAS threads would only fight with them for the same ones. With
# SCIPY_ARRAY_API scikit-learn lets arrays of other libraries through. Bytecode is kept whatever the
# environment says: every worker collects all tests, and many tests start Python.
JOBS ?= auto
ALONE := PYTHONDONTWRITEBYTECODE= SCIPY_ARRAY_API=1 OPENBLAS_NUM_THREADS=1
# Cases that share their fits (one xdist_group) run in one process.
SHARED := -n $(JOBS) --dist loadgroup
MANY := tests/estimators/test_checks.py \
	tests/estimators/test_family.py::test_fit_transform_score_and_objective_agree \
	tests/test_fit_laws.py::test_the_objective_never_rises \
	tests/test_fit_laws.py::test_scaled_data_with_scaled_parameters_give_the_same_product \
	tests/test_fit_laws.py::test_permuting_samples_permutes_the_result \
	tests/test_fit_laws.py::test_the_final_codes_do_not_raise_the_objective \
	tests/estimators/test_regularisation.py::test_the_objective_never_rises
OLDEST := "numpy==2.1.*" "scipy==1.15.*" "scikit-learn==1.6.*" "numba==0.61.*" "array-api-compat==1.11.*" \
	"threadpoolctl==3.5.*" "array-api-strict==2.3.*"

# What older releases may do otherwise: arrays, engines, sparse data, checks of scikit-learn.
OF_OLDEST := tests/arrays tests/engine tests/inits tests/solvers tests/losses tests/weightings tests/test_screening.py \
	tests/test_sources.py tests/estimators/test_checks.py tests/estimators/test_behaviour.py README.md

.PHONY: demo test test-all check docs pictures bench bench-scale coverage oldest wheel installed dist format clean

demo: $(VENV)/.demo
	@$(BIN)/robustnmf demo --out demo

# Minutes on two cores. Without PyTorch what needs it is skipped.
test: $(VENV)/.test
	$(ALONE) $(BIN)/python -m pytest $(SHARED) -m "not extra"

# What that leaves out: PyTorch, documentation, examples, a browser, the full product of laws, the oldest releases.
test-all: $(VENV)/.dev
	$(ALONE) $(BIN)/python -m pytest $(SHARED) -m "extra or torch"
	$(MAKE) oldest

# Which lines tests run. Tracing is slow, so the laws that have hundreds of cases each and the checks of
# scikit-learn are left out: what is reported is no more than what all tests cover.
coverage: $(VENV)/.dev
	COVERAGE_CORE=sysmon $(ALONE) $(BIN)/python -m pytest $(SHARED) $(MANY:%=--deselect %) --cov --cov-report=term-missing:skip-covered

check: $(VENV)/.check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Every table of results and every picture that README and docs show, from the files in results/.
pictures: $(VENV)/.dev
	$(BIN)/python docs/shown.py --measure

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/batch.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/solvers.py
	@$(BIN)/python benchmarks/targets.py
	$(BIN)/python benchmarks/starts.py
	$(BIN)/python benchmarks/cost.py
	$(BIN)/python benchmarks/defaults.py
	$(BIN)/python benchmarks/missing.py
	$(BIN)/python benchmarks/sparse_rows.py
	$(BIN)/python benchmarks/sklearn_cases.py
	$(BIN)/python benchmarks/figures.py
	$(BIN)/python benchmarks/idle.py

bench-scale: $(VENV)/.bench
	$(BIN)/python benchmarks/scale.py

dist: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --quiet

# Wheel and source distribution, each in an environment with the core's dependencies alone: README's example.
wheel: dist installed

# The same with what lies in dist already: a release installs one build on several versions of Python.
installed:
	for file in $$(ls dist/*.whl dist/*.tar.gz); do \
	  rm -rf $(VENV)/wheel && $(PYTHON) -m venv $(VENV)/wheel && \
	  $(VENV)/wheel/bin/python -m pip install --quiet --no-compile $$file && \
	  (cd dist && ../$(VENV)/wheel/bin/python -m doctest ../README.md) && \
	  (cd dist && ../$(VENV)/wheel/bin/python -X importtime -c "import robustnmf" 2>&1 | tail -1) && \
	  echo "$$file: README's example holds on $$($(VENV)/wheel/bin/python --version)" || exit 1; \
	done

# The oldest releases that are allowed, and nothing optional.
oldest:
	rm -rf $(VENV)/oldest && $(PYTHON) -m venv $(VENV)/oldest
	$(VENV)/oldest/bin/python -m pip install --quiet --no-compile --editable ".[test-core]" $(OLDEST)
	$(ALONE) $(VENV)/oldest/bin/python -m pytest $(SHARED) -m "not extra" $(OF_OLDEST)

# One stamp per set of extras, renewed when the project file changes. Python compiles what it imports; to
# compile all that is installed takes as long as installing it.
$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[cli]"
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[test]"
	@touch $@

$(VENV)/.check: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[check]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[dev]"
	@touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[dev,bench]"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[docs]"
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) demo dist docs/_build docs/auto_examples docs/generated docs/sg_execution_times.rst .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
