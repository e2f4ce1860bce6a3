# Two commands do everything on a fresh machine:
#   make demo   a simulated Mars scene from raw files to maps and a report
#   make test   the tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/pip --disable-pip-version-check install --quiet
SNAKEMAKE := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/snakemake --workflow-profile workflow/profiles/local

.PHONY: demo experiments experiments-quick experiments-verify test test-all lint format lock schema clean-demo help
.DEFAULT_GOAL := help

help:
	@echo "make demo      map a simulated Mars scene (minutes) and name the files to open"
	@echo "make experiments-quick  run a small version of the paper's experiments (minutes)"
	@echo "make experiments        run all of them (hours)"
	@echo "make test      run the tests"
	@echo "make test-all  run the tests, the long statistical, cluster, browser and QGIS ones too"
	@echo "make lint      ruff, mypy, snakefmt and snakemake --lint"
	@echo "make lock      resolve requirements.lock anew from pyproject.toml"

# The lock is hashed and names no index, so it installs from whatever index pip or uv is set up to use.
# pip installs uv, which is ten times faster; where uv cannot work, pip does the whole job.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gibbsite needs Python 3.11 or newer; $(PYTHON) is older. Use: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) uv && $(BIN)/uv pip install --python $(BIN)/python --quiet --compile-bytecode --require-hashes \
	  -r requirements.lock || { echo "uv could not do it; pip installs instead, which takes about two minutes"; \
	  $(PIP) --require-hashes -r requirements.lock; }
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $(READY)

demo: $(READY)
	$(SNAKEMAKE) --configfile config/demo.yaml
	@echo; echo "Open:"; echo "  results/demo/report.html                         the whole story, in any browser"; \
	echo "  results/demo/products/frt0000ace5_class.tif       the class map, in QGIS (its style comes along)"; \
	echo "  results/demo/products/frt0000ace5_classes.gpkg    the classes as polygons"; \
	echo "  results/demo/spectra/spectra.png                 the spectra of the classes"; \
	echo "  results/demo/interpretation.json                 what they may be, and what may be an artefact"

experiments experiments-quick: $(READY)
	$(SNAKEMAKE) experiments $(if $(findstring quick,$@),--configfile config/experiments-quick.yaml)
	@echo; echo "Open results/$@/experiments.html"

# Results depend on the kind of processor in the last bits, and so may the chains; docs/experiments.md says how far.
experiments-verify: $(READY)
	$(BIN)/gibbsite verify --published docs/experiments/quick/SHA256SUMS --out-dir results/experiments-quick

test: $(READY)
	$(BIN)/python -m pytest -m "not statistical and not cluster and not browser and not qgis" -n 2 --dist loadfile

test-all: $(READY) lint
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow
	$(SNAKEMAKE) --configfile config/demo.yaml --lint

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

# The schema Snakemake validates with is written from the pydantic models; a test keeps it in step.
schema: $(READY)
	$(BIN)/python -m gibbsite.settings > workflow/schemas/config.schema.json

lock: $(READY)
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
	  --extra dev --output-file requirements.lock pyproject.toml

clean-demo:
	rm -rf results/demo
