# Two commands to remember: `make audit` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= reports

# Tests start hundreds of processes: without byte code each of them compiles dpaudit anew.
export PYTHONDONTWRITEBYTECODE :=

# The tests of `make test`. One worker runs a whole file, whose tests may share what they computed.
FAST := --dist loadfile -m "not slow and not nightly"

.DEFAULT_GOAL := help
.PHONY: help audit reference test test-slow test-nightly test-faults test-adapters test-adapters-pitfalls test-lowest test-newest nightly coverage lint types prose check docs dist measured clean

help:
	@echo "make audit   audit the mechanisms in audits/, but for the nightly ones, and write $(OUT)/index.html"
	@echo "make test    run the tests, but for the slow ones and the nightly ones"
	@echo "make test-slow   run the slow ones: thousands of whole audits, doors of the command line"
	@echo "make test-nightly   run those that take more than ten seconds and that CI does without"
	@echo "make test-faults   inject faults: hostile files, full disks, killed processes (five minutes at most)"
	@echo "make test-adapters   run the adapters with the packages that they adapt, a group at a time"
	@echo "make nightly   all audits, slow and nightly tests, faults, adapters, planted mistakes, mutants of ledgers; no test is skipped"
	@echo "make coverage   branch coverage of dpaudit/ by the tests of 'make test'"
	@echo "make reference   make the run in reports/reference again; git keeps its summary, its first page and the errata as PDF"
	@echo "make check   lint, types, and the rules of docs/prose.py for all English"
	@echo "make docs    build the site: docs/_build/html/index.html"
	@echo "make dist    build sdist and wheel, and try the wheel in an empty environment"
	@echo "make test-lowest, make test-newest   the tests with the oldest and the newest packages allowed"
	@echo "make measured   repeat the measurements of docs/measured that are out of date; takes a night, and may be interrupted"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp for each set of extras, so that a second `make` installs nothing.
$(VENV)/.audit: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[third-party,papers]' || \
		{ echo "without OpenDP and diffprivlib: their audits are skipped"; \
		  $(BIN)/python -m pip install --quiet -c constraints.txt -e '.[papers]'; }
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[third-party,papers,test]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[third-party,papers,test,dev]'
	@touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	@touch $@

$(VENV)/.release: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt build twine uv
	@touch $@

# A run of a selection would keep the results of all other audits.
audit: $(VENV)/.audit
	rm -rf $(OUT)/audits $(OUT)/statements $(OUT)/results.json
	$(BIN)/dpaudit run audits --profile quick -m "not nightly" --out $(OUT)

# The run that the README links to: all audits, in a directory of which git keeps a summary.
reference: $(VENV)/.audit
	rm -rf reports/reference
	$(BIN)/dpaudit run audits --profile quick --out reports/reference

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto $(FAST)

# SLOW="tests/run tests/test_soundness.py" selects files and folders.
test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -n auto -m "slow and not nightly" --durations=12 $(SLOW)

# The scheduled workflow runs these tests, and CI does not.
test-nightly: $(VENV)/.test
	$(BIN)/python -m pytest -n auto -m nightly --durations=12

# pyproject.toml keeps tests/faults out of the other targets.
test-faults: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 tests/faults

nightly: $(VENV)/.audit $(VENV)/.test $(VENV)/.docs test-adapters
	$(BIN)/dpaudit run audits --profile quick --out $(OUT)/nightly
	DPAUDIT_NO_SKIPS=1 $(BIN)/python -m pytest -n auto -m "slow or nightly"
	DPAUDIT_NO_SKIPS=1 $(BIN)/python -m pytest -n 2 tests/faults
	$(BIN)/python -m benchmarks.mutation
	$(BIN)/dpaudit ledger --mutants --out $(OUT)/nightly

# Workers and subprocesses included: [tool.coverage.run] of pyproject.toml.
coverage: $(VENV)/.dev
	rm -f .coverage .coverage.*
	$(BIN)/python -m pytest -n auto $(FAST) --cov --cov-report=
	$(BIN)/coverage combine --quiet --append || true  # processes that ended after pytest
	$(BIN)/coverage report --skip-covered

# Each group in an environment of its own: their packages do not agree on versions of others.
ADAPTERS := pipelinedp smartnoise jax opacus
HUNTS := hunt hunt-torch hunt-synthetic hunt-old
AUDITED := accountants
TESTS_OF_pipelinedp := pydp or pipeline_dp
TESTS_OF_smartnoise := smartnoise
TESTS_OF_jax := jax
TESTS_OF_opacus := opacus
# Pages whose code needs the package.
PAGES_OF_jax := jax-privacy
PAGES_OF_opacus := opacus training hugging-face

test-adapters: $(addprefix test-adapters-,$(ADAPTERS)) $(addprefix test-adapters-,$(HUNTS)) \
	$(addprefix test-adapters-,$(AUDITED)) test-adapters-pitfalls

# Packages that only audits/field audits. They are installed without their dependencies, because
# their pins conflict. A package that is missing fails its audits.
AUDITS_OF_hunt := audits/field/audit_statistics_packages.py audits/field/audit_local_packages.py \
	audits/field/audit_streams.py
AUDITS_OF_hunt-torch := audits/field/audit_torch_packages.py
AUDITS_OF_hunt-synthetic := audits/field/audit_synthetic_data.py

test-adapters-hunt test-adapters-hunt-torch test-adapters-hunt-synthetic: test-adapters-%:
	$(PYTHON) -m venv --clear $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install --quiet -c .ci/adapters.txt -e '.[adapters-$*]'
	$(VENV)-$*/bin/python -m pip install --quiet --no-deps -r .ci/$*.txt
	DPAUDIT_NO_SKIPS=1 $(VENV)-$*/bin/dpaudit run $(AUDITS_OF_$*) --out $(OUT)/$*

# Accountants of Opacus and autodp, against certified lower bounds.
test-adapters-accountants: test-adapters-%:
	$(PYTHON) -m venv --clear $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install --quiet -c .ci/adapters.txt -e '.[adapters-$*]'
	DPAUDIT_NO_SKIPS=1 $(VENV)-$*/bin/dpaudit run audits/third_party/audit_accountants.py \
		--out $(OUT)/$*

# These packages need numpy 1 and Python 3.11. They run in an interpreter without dpaudit.
test-adapters-hunt-old: $(VENV)/.audit
	$(PYTHON) -m venv --clear $(VENV)-hunt-old
	$(VENV)-hunt-old/bin/python -m pip install --quiet -r .ci/hunt-old.txt
	$(VENV)-hunt-old/bin/python -m pip install --quiet --no-deps -r .ci/hunt-old-packages.txt
	DPAUDIT_HUNT_PYTHON=$(VENV)-hunt-old/bin/python $(BIN)/dpaudit run \
		audits/field/audit_old_packages.py --out $(OUT)/hunt-old

test-adapters-%:
	$(PYTHON) -m venv --clear $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install --quiet -c .ci/adapters.txt -e '.[adapters-$*]'
	DPAUDIT_NO_SKIPS=1 $(VENV)-$*/bin/python -m pytest tests/adapters -k "$(TESTS_OF_$*)"
	$(if $(PAGES_OF_$*),$(VENV)-$*/bin/python docs/snippets.py --check \
		$(PAGES_OF_$*:%=docs/guides/%.md))

# The pitfalls of private training, with the parts of JAX Privacy.
test-adapters-pitfalls: test-adapters-jax
	DPAUDIT_NO_SKIPS=1 $(VENV)-jax/bin/dpaudit run audits/training/audit_pitfalls.py \
		--profile quick --out $(OUT)/pitfalls

# Each in an environment of its own; PYTHON=python3.13 makes it one of another Python.
test-lowest test-newest: test-%: $(VENV)/.release
	$(BIN)/uv venv --quiet --clear --python $(PYTHON) $(VENV)-$*
	VIRTUAL_ENV=$(VENV)-$* $(BIN)/uv pip install --quiet \
		$(if $(filter lowest,$*),--resolution lowest-direct,--upgrade) -e '.[test]'
	$(VENV)-$*/bin/python -m pytest -n auto $(FAST)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

prose: $(VENV)/.dev
	$(BIN)/python docs/prose.py check

check: lint types prose

# Shows the run of `make audit` or `make reference`; a warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python docs/snippets.py --check docs/notebooks/*.ipynb
	$(BIN)/sphinx-build -q -W --keep-going -n -b html docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

dist: $(VENV)/.release
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(PYTHON) .ci/check_install.py dist/*.whl

# Repeats what docs/measured/ shows and is out of date. ONLY="speed workers" selects measurements.
measured: $(VENV)-peers/.test
	$(VENV)-peers/bin/python docs/measure.py $(ONLY)

$(VENV)-peers/.test: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/python -m pip install --quiet -c constraints.txt -e '.[third-party,papers,test,peers]'
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-newest $(VENV)-peers $(addprefix $(VENV)-,$(ADAPTERS) $(HUNTS) $(AUDITED)) build dist docs/_build docs/papers *.egg-info .pytest_cache .mypy_cache .ruff_cache .coverage .coverage.*
