.DEFAULT_GOAL := help
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin

.PHONY: help install demo test check lint types format bench docs faults cluster-test package audit native sanitize clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

install: $(VENV)/.installed ## Create .venv and install EpiCortex with everything for development

demo: install ## Evolve networks that read handwritten digits (a minute)
	$(BIN)/epicortex evolve digits --minutes 1

test: install ## Run the linters, the type checker and the tests (five to ten minutes on two cores)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 3 --dist worksteal -m "not slow and not realdata and not cluster"

lint: install ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install ## Check types
	$(BIN)/mypy

format: install ## Bring the code into its style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: install ## Build the documentation site into docs/_build/html
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build/html

faults: install ## Kill, truncate, fill and flood for real; prints a table (half an hour of one quiet core)
	$(BIN)/python -m tests.faults

cluster-test: install ## Install Ray and MPI, and test the engines over all four (under ten minutes)
	$(BIN)/python -m pip install --quiet --editable '.[ray,mpi]'
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow" tests/contracts tests/engines tests/cluster

CSRC := src/epicortex/native/csrc

native: ## Build the native library inside the source tree, with warnings as errors
	cmake -S $(CSRC) -B build/native -DEPX_STRICT=ON
	cmake --build build/native --parallel 2
	cmake -E copy_if_different build/native/libepicortex_native.* src/epicortex/native/

sanitize: install ## Run the native tests and the fuzzer under AddressSanitizer and UBSan (some minutes)
	cmake -S $(CSRC) -B build/sanitize -DEPX_STRICT=ON -DEPX_SANITIZE=ON
	cmake --build build/sanitize --parallel 2
	build/sanitize/fuzz 3000
	EPICORTEX_NATIVE_LIBRARY=$(abspath build/sanitize/libepicortex_native.so) LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 \
		$(BIN)/pytest -q tests/native

package: install ## Build wheel and source archive, and do a run with each in an empty environment
	rm -rf dist
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m tests.package $(PYTHON)

audit: install ## Compare what is installed with the public list of advisories (needs a network)
	$(BIN)/python -m pip install --quiet pip-audit
	mkdir -p build
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+[a-z0-9.]*$$//' > build/installed.txt
	$(BIN)/python -m pip_audit --strict --no-deps --disable-pip --requirement build/installed.txt

bench: install ## Measure most of what docs/performance.md states
	$(BIN)/python -m benchmarks

clean: ## Remove what was built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
