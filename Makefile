# The two commands are `make demo` and `make test`; everything they need is set up by itself in .venv.

PYTHON ?= python3
EXTRAS ?= dev
VENV   := .venv
BIN    := $(VENV)/bin
comma  := ,
READY  := $(VENV)/.ready-$(subst $(comma),-,$(EXTRAS))
# Products of matrices on two processors each would be in each other's way. Hundreds of processes are started; none of them
# should have to compile what another has compiled. conftest.py says which tests stay together.
PYTEST := env -u PYTHONDONTWRITEBYTECODE OPENBLAS_NUM_THREADS=1 $(BIN)/pytest --no-loadscope-reorder
# Quick tests keep a processor busy each. Of the others, one often waits for a server, a disk or a browser.
JOBS   ?= logical
MORE   ?= 3
# What `make test` leaves out, and the parts of `make test-long`: docs/testing.md.
QUICK  := not (long or browser or spark or postgres or server or process or slow)
PARTS  := attack curator learn ledger noise query release reproduce serve source mutants-1 mutants-2 mutants-3 rest

.PHONY: demo test test-all test-long check fix bench serve clean

demo: $(VENV)/.ready-base
	$(BIN)/discreet demo

test: $(READY)
	$(PYTEST) -n $(JOBS) -m "$(QUICK)"

# Then real servers, processes, kills, power cuts, the browser and Spark: EXTRAS=dev,pld,bench,servers,browser installs
# what they need.
test-all: test
	$(PYTEST) -n $(MORE) -m "not long and not ($(QUICK))"

# Everything with new examples and new noise: all parts, or one (PART=ledger).
test-long: $(READY)
	@for part in $(or $(PART),$(PARTS)); do echo "== $$part"; \
	$(PYTEST) -n $(MORE) --hypothesis-profile=searching --part=$$part || exit 1; done

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fix: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench:
	$(MAKE) $(VENV)/.ready-dev-pld-bench-servers-browser EXTRAS=dev,pld,bench,servers,browser
	for script in accounting attack crossover curator dense holdout kmeans ledger noise online pure ranges release server sources textbook tree wide; do $(BIN)/python bench/$$script.py || exit 1; done

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
