# Two commands set everything up: `make demo` runs the whole pipeline at demo size, `make test` runs the tests.
# An environment is made once and made anew when its constraints file changes. PYTHON may name 3.11 or 3.12.
SHELL := bash
PYTHON ?= python3
CORES ?= 2
VENV := .venv
VENV_VERL := .venv-verl
BIN := $(VENV)/bin
export OMP_WAIT_POLICY := passive
export PIP_DISABLE_PIP_VERSION_CHECK := 1
SNAKEMAKE := workflow/scripts/alone.sh $(BIN)/snakemake

hash = $(shell cat $(1) | sha256sum | cut -c1-16)
READY := $(VENV)/ready-$(call hash,constraints/default.txt pyproject.toml)
READY_VERL := $(VENV_VERL)/ready-$(call hash,constraints/verl.txt pyproject.toml workflow/scripts/install_verl_env.sh)

.PHONY: help demo demo-ablations test test-workflow test-verl test-slurm lint format schema clean

help:
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 20

$(READY): constraints/default.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 12) else "Python 3.11 or 3.12 is needed, this is %d.%d; name one with PYTHON=" % sys.version_info[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints/default.txt torch
	$(BIN)/pip install -q -c constraints/default.txt -e '.[workflow,test]'
	rm -f $(VENV)/ready-* && touch $@

$(READY_VERL): constraints/verl.txt pyproject.toml workflow/scripts/install_verl_env.sh
	PYTHON=$(PYTHON) workflow/scripts/install_verl_env.sh $(VENV_VERL)
	rm -f $(VENV_VERL)/ready-* && touch $@

demo: $(READY) ## data, base model, training, evaluation, Table 1, figures and report at demo size: results/demo
	$(SNAKEMAKE) --profile workflow/profiles/local --cores $(CORES) --configfile config/demo.yaml all
	$(SNAKEMAKE) --profile workflow/profiles/local --cores 1 --configfile config/demo.yaml --report results/demo/report.html all
	@$(BIN)/fr3e data status
	@echo; cat results/demo/table1.md; echo; echo "results/demo/report.html is the whole report."

demo-ablations: $(READY) ## every arm of config/demo.yaml, with its ablation table
	$(SNAKEMAKE) --profile workflow/profiles/local --cores $(CORES) --configfile config/demo.yaml arms

test: $(READY) ## lint and all tests that need neither verl nor Slurm
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest -m "not workflow and not verl and not slurm and not gpu" -n $(CORES) --dist loadfile tests

test-workflow: $(READY) ## the real Snakemake: whole DAG, reruns, kills, locks, provenance
	$(BIN)/python -m pytest -m workflow tests

test-verl: $(READY_VERL) ## FR3E on verl: Ray, FSDP2, vLLM on the CPU
	$(VENV_VERL)/bin/python -m pytest -m verl $$(find tests -name 'test_*_verl.py' | sort)

test-slurm: $(READY) ## the demo through a real Slurm (Debian, as root)
	$(BIN)/python -m pytest -m slurm tests

lint: $(READY) ## ruff and snakefmt
	$(BIN)/ruff check fr3e tests benchmarks
	$(BIN)/ruff format --check -q fr3e tests benchmarks
	$(BIN)/snakefmt --check Snakefile workflow/rules 2>&1 | tail -n 1; exit $${PIPESTATUS[0]}

format: $(READY) ## rewrite the code in the project's format
	$(BIN)/ruff check -q --fix fr3e tests benchmarks; $(BIN)/ruff format -q fr3e tests benchmarks; $(BIN)/snakefmt Snakefile workflow/rules

schema: $(READY) ## config/schema.json from the configuration models
	$(BIN)/fr3e config schema

clean: ## remove results and caches, keep environments and data
	rm -rf results/demo results/demo_scarce .snakemake
