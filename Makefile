# The two commands are `make demo` and `make test`; everything they need is set up by itself in .venv.

PYTHON ?= python3
EXTRAS ?= dev
VENV   := .venv
BIN    := $(VENV)/bin
comma  := ,
READY  := $(VENV)/.ready-$(subst $(comma),-,$(EXTRAS))
# Three workers test at once, for two processors: often one waits for a server or a browser. Products of matrices on two
# processors each would be in each other's way. conftest.py says which tests stay together. Hundreds of processes are
# started; none of them should have to compile what another has compiled.
PYTEST := env -u PYTHONDONTWRITEBYTECODE OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 3

.PHONY: demo test test-long check bench serve clean

demo: $(VENV)/.ready-base
	$(BIN)/discreet demo

test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(BIN)/mypy & types=$$!; $(PYTEST) -m "not long"; tests=$$?; \
	wait $$types || { echo "mypy has found something: see above, or make check"; exit 1; }; exit $$tests

test-long: $(READY)
	$(PYTEST) --hypothesis-profile=searching

check: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy

bench:
	$(MAKE) $(VENV)/.ready-dev-pld-bench-servers-browser EXTRAS=dev,pld,bench,servers,browser
	for script in accounting attack crossover curator dense holdout kmeans ledger noise online pure release server sources textbook tree wide; do $(BIN)/python bench/$$script.py || exit 1; done

serve:
	$(MAKE) $(VENV)/.ready-server EXTRAS=server
	$(BIN)/discreet demo --serve

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

$(VENV)/.ready-base: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(READY): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"
	@touch $(VENV)/.ready-base $@

clean:
	rm -rf $(VENV) out build dist .mypy_cache .ruff_cache .pytest_cache
