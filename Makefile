# `make demo` and `make test` need nothing but Python and a compiler: tools/bootstrap.sh brings the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BUILD := build
VENV := .venv
BIN := $(VENV)/bin
CMAKE := $(BIN)/cmake
UNIT_ARGS ?=
PYTEST_WORKERS ?= 2
PYTEST_ARGS ?=
FUZZ_SECONDS ?= 10
DEMO := demo
STAGE := $(BUILD)/stage

# The venv's tools first: cmake looks for ninja, pip for cmake.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# The library, the Python package and every wheel that a test builds are the same sources with the same
# flags in several build directories: ccache compiles them once. Looked for again at each recipe, because
# bootstrap may have just installed it.
ifndef CMAKE_CXX_COMPILER_LAUNCHER
export CMAKE_CXX_COMPILER_LAUNCHER = $(shell command -v ccache)
export CCACHE_DIR ?= $(CURDIR)/$(BUILD)/ccache
# Paths relative to the clone, so that build directories of one depth share objects with debug information.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR = 1
endif
# A developer's shell may carry a traced session's settings; a build or a test must not inherit them.
unexport DFTRACER_ENABLE DFTRACER_LOG_FILE DFTRACER_CONFIGURATION

CXX_FILES = $(shell find src include tests examples benchmarks \
  \( -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.hpp' \) 2>/dev/null | sort)
PACKAGE_FILES = $(shell find src include python cmake \
  -type f ! -name '*.pyc' 2>/dev/null) CMakeLists.txt pyproject.toml VERSION
# A directory changes when a file in it is added or removed, which no file's own time shows.
PACKAGE_DIRS = $(shell find src include python cmake -type d ! -name __pycache__ 2>/dev/null)

say = @printf '\n\033[1m== %s\033[0m\n' "$(1)"

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

BOOTSTRAPS := $(addprefix bootstrap-,build demo test bench foreign bytes cpython pythons trainers stores dlio mpi aarch64 docs wheels)
.PHONY: $(BOOTSTRAPS)
$(BOOTSTRAPS): bootstrap-%:
	@tools/bootstrap.sh $*

# $(1) directory, $(2) options. Configured when the options are new; ninja itself sees changed CMake files.
define cmake_build
	@if [ "$$(cat $(BUILD)/$(1)/.options 2>/dev/null)" != "$(2)" ]; then \
	  $(CMAKE) -S . -B $(BUILD)/$(1) -G Ninja --log-level=WARNING $(2) && \
	  echo "$(2)" > $(BUILD)/$(1)/.options; fi
	@$(CMAKE) --build $(BUILD)/$(1)
endef

.PHONY: native
native: bootstrap-build
	$(call say,building the library)
	$(call cmake_build,release,-DCMAKE_BUILD_TYPE=RelWithDebInfo)

.PHONY: stage
stage: native
	@$(CMAKE) --install $(BUILD)/release --prefix $(STAGE) >/dev/null

$(BUILD)/.package-installed: $(PACKAGE_FILES) $(PACKAGE_DIRS)
	$(call say,installing the Python package into $(VENV))
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps \
	  --force-reinstall .
	@touch $@

.PHONY: package
package: native
	@$(MAKE) -s $(BUILD)/.package-installed

.PHONY: build
build: native package ## Build the library, and install the Python package into .venv

.PHONY: demo
demo: bootstrap-demo package ## Trace a small PyTorch training, and report where its time went
	@PATH="$(CURDIR)/$(BIN):$$PATH" examples/demo/run.sh $(DEMO)
comma := ,

.PHONY: test
test: bootstrap-test build test-unit test-python ## Build, and test every capability in ten minutes
	$(call say,all tests passed)

# Servers, and other programs' own suites, have targets of their own: test-foreign, test-bytes, test-trainers, test-stores, test-mpi, test-dlio,
# test-cpython and test-pythons install packages and together take longer than CI allows.
MORE_TESTS := test-asan test-tsan fuzz test-long
.PHONY: test-all
test-all: $(MORE_TESTS) ## The rest: sanitizers, fuzzing, long tests, other programs
	$(call say,all further tests passed)

.PHONY: test-unit
test-unit: bootstrap-test native
	$(call say,unit tests)
	@grep -qs DFTRACER_BUILD_TESTS:BOOL=ON $(BUILD)/release/CMakeCache.txt || \
	  $(CMAKE) -S . -B $(BUILD)/release --log-level=WARNING -DDFTRACER_BUILD_TESTS=ON
	@$(CMAKE) --build $(BUILD)/release
	@$(BUILD)/release/bin/dftracer_unit --no-intro $(UNIT_ARGS)

PYTEST = $(BIN)/python -m pytest -q -n $(PYTEST_WORKERS) --dist worksteal

.PHONY: test-python
test-python: bootstrap-test stage package
	$(call say,end-to-end$(comma) fault and Python tests)
	@$(PYTEST) -m "not long" $(PYTEST_ARGS)

.PHONY: test-long
test-long: bootstrap-test bootstrap-docs stage package ## The tests that `make test` leaves out (pytest's mark `long`)
	$(call say,long tests)
	@$(PYTEST) -m long $(PYTEST_ARGS)

.PHONY: test-trainers
test-trainers: bootstrap-trainers stage package ## PyTorch: Lightning, and Hugging Face's Trainer
	$(call say,Lightning and Hugging Face)
	@$(PYTEST) $(PYTEST_ARGS) tests/pytorch/slow

.PHONY: test-stores
test-stores: bootstrap-stores stage package ## Object stores: boto3, s3fs, fsspec, gcsfs, obstore, ... against local servers
	$(call say,object stores)
	@$(PYTEST) $(PYTEST_ARGS) tests/stores

.PHONY: test-mpi
test-mpi: bootstrap-mpi stage package ## Open MPI, MPICH and Intel MPI, from C, Fortran and mpi4py
	$(call say,MPI)
	@$(PYTEST) $(PYTEST_ARGS) tests/mpi

.PHONY: test-foreign
test-foreign: bootstrap-foreign stage package ## PostgreSQL, redis, fio and stress-ng, bare and traced
	$(call say,PostgreSQL$(comma) redis$(comma) fio and stress-ng$(comma) bare and traced)
	@$(PYTEST) $(PYTEST_ARGS) tests/foreign/slow

.PHONY: test-bytes
test-bytes: bootstrap-bytes stage package ## Bytes that other programs and libraries move, against the sizes of their files
	$(call say,bytes of other programs)
	@$(PYTEST) $(PYTEST_ARGS) tests/bytes

.PHONY: test-cpython
test-cpython: bootstrap-cpython stage ## CPython's own tests, bare and traced: no new failure
	$(call say,CPython's own tests$(comma) bare and traced)
	@$(PYTEST) $(PYTEST_ARGS) tests/foreign/cpython

.PHONY: test-pythons
test-pythons: bootstrap-pythons ## The Python API with every Python from 3.9 on that is there
	@$(BIN)/python tools/test_pythons.py --workers $(PYTEST_WORKERS) $(PYTHONS_ARGS)

.PHONY: test-dlio
test-dlio: bootstrap-dlio stage package ## DLIO on a small workload, bare and traced
	$(call say,DLIO$(comma) bare and traced)
	@$(PYTEST) $(PYTEST_ARGS) tests/foreign/dlio

# Cross-built, and run under qemu-user: what that cannot show is in docs/design/aarch64.md.
AARCH64_ROOT := $(CURDIR)/$(BUILD)/aarch64-sysroot
AARCH64_PREFIX := $(CURDIR)/$(BUILD)/aarch64-site/dftracer
AARCH64_BUILD = -DCMAKE_TOOLCHAIN_FILE=tests/aarch64/toolchain.cmake -DDFTRACER_WERROR=ON \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DDFTRACER_BUILD_TESTS=ON -DDFTRACER_BUILD_PYTHON=ON \
  -DPython_EXECUTABLE=$(CURDIR)/tests/aarch64/bin/python-aarch64 \
  -DPython_INCLUDE_DIR=$(AARCH64_ROOT)/usr/include/python3.11

.PHONY: test-aarch64
test-aarch64: bootstrap-aarch64 stage package ## aarch64 under qemu-user: unit tests, end-to-end, both machines' traces
	$(call say,aarch64: cross build)
	$(call cmake_build,aarch64,$(AARCH64_BUILD))
	@$(CMAKE) --install $(BUILD)/aarch64 --prefix $(AARCH64_PREFIX) >/dev/null
	@cp -r python/dftracer/. $(AARCH64_PREFIX)
	@cp -r $(VENV)/lib/python3*/site-packages/pydftracer-*.dist-info $(BUILD)/aarch64-site
	$(call say,aarch64: unit tests)
	@tests/aarch64/unit.sh $(UNIT_ARGS)
	$(call say,aarch64: end-to-end tests)
	@QEMU_LD_PREFIX=$(AARCH64_ROOT) DFTRACER_PREFIX=$(AARCH64_PREFIX) PYTEST_WORKERS=$(PYTEST_WORKERS) \
	  tests/aarch64/enter.sh tests/aarch64/end_to_end.sh $(PYTEST_ARGS)

# AddressSanitizer and UndefinedBehaviorSanitizer share a build, with the fuzz targets.
ASAN_BUILD := -DDFTRACER_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=Debug \
  -DDFTRACER_BUILD_TESTS=ON -DDFTRACER_BUILD_FUZZ=ON
TSAN_BUILD := -DDFTRACER_SANITIZE=thread -DCMAKE_BUILD_TYPE=Debug -DDFTRACER_BUILD_TESTS=ON
export ASAN_OPTIONS ?= detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS ?= print_stacktrace=1:halt_on_error=1
# The tests fork while threads run, which ThreadSanitizer would otherwise refuse to follow.
export TSAN_OPTIONS ?= halt_on_error=1:second_deadlock_stack=1:die_after_fork=0
# Older ThreadSanitizers do not start under the strong address randomisation of newer kernels.
NO_ASLR = $(shell setarch -R true 2>/dev/null && echo setarch -R)

.PHONY: test-asan
test-asan: bootstrap-test ## Unit tests under AddressSanitizer (with undefined behaviour)
	$(call say,unit tests under AddressSanitizer and UndefinedBehaviorSanitizer)
	$(call cmake_build,asan,$(ASAN_BUILD))
	@$(BUILD)/asan/bin/dftracer_unit --no-intro $(UNIT_ARGS)

.PHONY: test-ubsan
test-ubsan: test-asan ## The same build: undefined behaviour is checked there as well

.PHONY: test-tsan
test-tsan: bootstrap-test ## Unit tests under ThreadSanitizer
	$(call say,unit tests under ThreadSanitizer)
	$(call cmake_build,tsan,$(TSAN_BUILD))
	@$(NO_ASLR) $(BUILD)/tsan/bin/dftracer_unit --no-intro $(UNIT_ARGS)

.PHONY: fuzz
fuzz: bootstrap-test ## Run each fuzz target for FUZZ_SECONDS (10)
	$(call say,fuzz targets$(comma) $(FUZZ_SECONDS) s each)
	$(call cmake_build,asan,$(ASAN_BUILD))
	@for source in tests/fuzz/fuzz_*.cpp; do \
	  [ -e "$$source" ] || continue; \
	  name=$$(basename "$$source" .cpp); \
	  corpus=tests/fuzz/corpus/$${name#fuzz_}; \
	  printf '%s: ' "$$name"; \
	  [ -d "$$corpus" ] || corpus=; \
	  (cd $(BUILD) && asan/bin/$$name -max_total_time=$(FUZZ_SECONDS) -runs=10000000 -max_len=65536 \
	    $${corpus:+../$$corpus}) || exit 1; \
	done

CHECK_BUILD := -DDFTRACER_WERROR=ON -DDFTRACER_BUILD_TESTS=ON -DDFTRACER_BUILD_FUZZ=ON \
  -DDFTRACER_BUILD_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python

VENV_PYTHON = $(shell $(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')

.PHONY: check
check: bootstrap-test bootstrap-docs bootstrap-wheels package ## Format, lint, types, include arrows and documents
	$(call say,clang-format)
	@$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	$(call say,include and import arrows)
	@$(BIN)/python tools/check_includes.py
	@$(BIN)/python tools/check_imports.py
	$(call say,ruff)
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet .
	$(call say,mypy)
	@$(BIN)/mypy --strict python/dftracer
	@MYPYPATH=python $(BIN)/python -m mypy.stubtest dftracer._core dftracer._reader
	$(call say,documents)
	@$(BIN)/python tools/make_config_docs.py --check
	@$(BIN)/python tools/make_interception_docs.py --check
	@$(BIN)/python tools/check_figures.py
	@$(MKDOCS) --site-dir $(BUILD)/site-check
	$(call say,warnings as errors)
	$(call cmake_build,check,$(CHECK_BUILD))
	$(call say,symbols$(comma) size and licences of a wheel)
	@$(BIN)/python tools/wheels.py --arch x86_64 --python $(VENV_PYTHON) --no-sdist --into $(BUILD)/wheels/check
	$(call say,clang-tidy)
	@$(BIN)/python tools/run_tidy.py $(BUILD)/check
	$(call say,all checks passed)

.PHONY: format
format: bootstrap-test ## Rewrite sources in the project's format
	@$(BIN)/clang-format -i $(CXX_FILES)
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format --quiet .

# Measured is what users install. `make package` puts the local build back.
.PHONY: install-wheel
install-wheel: bootstrap-wheels
	@rm -rf $(BUILD)/wheels/bench $(BUILD)/.package-installed
	@$(BIN)/python tools/wheels.py --arch $$(uname -m) --python $(VENV_PYTHON) --no-sdist --into $(BUILD)/wheels/bench
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall \
	  $(BUILD)/wheels/bench/*.whl

.PHONY: bench
bench: bench-calls $(if $(BENCH_ARGS),,bench-reading bench-torch) ## Measure the costs and print tables

.PHONY: bench-calls
bench-calls: bootstrap-bench install-wheel ## … what recording costs a program (BENCH_ARGS: of this one)
	@$(BIN)/python benchmarks/run.py $(BENCH_ARGS)
	$(if $(BENCH_ARGS),,@$(BIN)/python benchmarks/mapped.py)

.PHONY: bench-reading
bench-reading: bootstrap-bench install-wheel ## … how fast traces are read, merged and reported on
	@$(BIN)/python benchmarks/reading.py
	@$(BIN)/python benchmarks/merging.py --repeats 3
	@$(BIN)/python benchmarks/reporting.py

.PHONY: bench-torch
bench-torch: bootstrap-bench install-wheel ## … what tracing costs PyTorch: an operation, a training loop
	@$(BIN)/python benchmarks/torch_dynamo.py
	@$(BIN)/python benchmarks/torch_lineage.py
	@$(BIN)/python benchmarks/torch_collectives.py
	@$(BIN)/python benchmarks/torch_training.py

.PHONY: bench-diagnosis
bench-diagnosis: bootstrap-bench package ## … what reports name first of programs with a known cause of slowness
	@$(BIN)/python benchmarks/diagnosis.py $(DIAGNOSIS_ARGS)
	@$(BIN)/python benchmarks/whatif.py

.PHONY: wheel
wheel: bootstrap-build ## Build a wheel into dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps \
	  --wheel-dir dist .
	@ls -l dist

.PHONY: wheel-companion
wheel-companion: bootstrap-build ## Build the empty companion distribution `dftracer` into dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps \
	  --wheel-dir dist packaging/dftracer

.PHONY: wheels
wheels: bootstrap-wheels wheel-companion ## Build and check the wheels of a release, and its source distribution, into dist/
	@$(BIN)/python tools/wheels.py $(WHEELS_ARGS)

.PHONY: test-wheels
test-wheels: bootstrap-test bootstrap-wheels ## Install the wheels of dist/ into empty venvs, and use them as a user does
	$(call say,wheels as installed)
	@$(BIN)/python -m pytest -q $(PYTEST_ARGS) tests/wheels

# The reference is read from the sources, so no installed package can make it stale.
MKDOCS = PYTHONPATH=python NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

.PHONY: docs
docs: bootstrap-docs ## Build the documentation site into build/site
	@$(BIN)/python tools/make_config_docs.py
	@$(BIN)/python tools/make_interception_docs.py
	$(call say,documentation site)
	@$(MKDOCS)
	@echo "open build/site/index.html"

.PHONY: clean
clean: ## Remove build products (.venv stays)
	@rm -rf $(BUILD) $(DEMO) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
