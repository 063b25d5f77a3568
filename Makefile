# `make demo` and `make test` each work alone on a fresh machine: they make .venv and install what they need.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: demo test lint types contracts docs bench clean
.DEFAULT_GOAL := test

.venv/pyvenv.cfg:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "guerdon needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(PIP) install --upgrade pip  # the resolver that comes with Python 3.11 takes minutes

.venv/.base: pyproject.toml .venv/pyvenv.cfg
	$(PIP) install -e .
	@touch $@

# torch is pinned so that the trainer contract tests get one known build.
.venv/.dev: pyproject.toml .venv/pyvenv.cfg
	$(PIP) install torch==2.13.0
	$(PIP) install -e '.[dev,trl]'
	@touch $@ .venv/.base

.venv/.docs: pyproject.toml .venv/.dev
	$(PIP) install -e '.[docs]'
	@touch $@

demo: .venv/.base
	$(BIN)/python examples/gsm8k/demo.py

test: .venv/.dev
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.dev
	$(BIN)/mypy

contracts: .venv/.dev
	$(BIN)/lint-imports

docs: .venv/.docs
	$(BIN)/mkdocs build --strict -q

bench: .venv/.dev
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv site build
