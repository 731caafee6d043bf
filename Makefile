# Needs git, make, npm and any Node from 20 on: the right Node comes with `npm ci`.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SHELLFLAGS = -ec
.PHONY: help up install ui test check check-types check-lint check-format check-imports broker browser test-ui screenshots bench test-gpu build guard fmt clean live bench-live bench-rest bench-memory bench-sweep bench-ui accept test-faults test-storms test-durability test-loss test-set-back test-hostile test-containers mutants

# Debian keeps nats-server where only root looks.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH):/usr/sbin
HEADROOM := node --import ./cli/require-node.mjs cli/main.ts
CACHE := node_modules/.cache
DIST ?= dist
LINT_CACHE ?= --cache --cache-strategy content --cache-location $(CACHE)/eslint/

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile

# Each demonstration has a store of its own; a broker means a cluster of one's own.
DEMO_SCENARIO = $(or $(patsubst %.scenario,%,$(basename $(notdir $(CONTROLLER_SIMULATED_FLEET)))),live-demo)
up: export CONTROLLER_DATA_DIR ?= $(if $(CONTROLLER_NATS_URL),./data,./data/demo/$(DEMO_SCENARIO))
up: install ui ## start the controller with its page; Ctrl-C stops it (ARGS="..." goes to `headroom serve`)
	@exec $(HEADROOM) serve $(ARGS)

live: install ui ## a broker, a controller and four servers of real processes on this machine; Ctrl-C ends them
	@exec $(HEADROOM) live $(ARGS)

# npm 10 drops the link to the Node it has just installed, and everything would silently run on the old one.
node_modules/.package-lock.json: package.json package-lock.json
	@echo "installing dependencies (once, some 20 seconds)"
	@npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
	@rm -f node_modules/.bin/node; for cpu in x64 arm64; do if node_modules/node-linux-$$cpu/bin/node -v >/dev/null 2>&1; then ln -s ../node-linux-$$cpu/bin/node node_modules/.bin/node; fi; done
	@node cli/require-node.mjs
	@touch $@

install: node_modules/.package-lock.json

UI := $(shell find ui -type f -not -name tsconfig.json)
ui: $(DIST)/ui/index.html ## build the page into dist/ui, when a file of it has changed

$(DIST)/ui/index.html: $(UI) node_modules/.package-lock.json
	@echo "building the page (some 3 seconds)"
	@DIST=$(DIST) vite build -c ui/vite.config.ts --logLevel warn

test: install ui check broker browser ## everything: checks, tests, coverage (ARGS="test/unit/x.test.ts" runs only those tests)
ifdef ARGS
	vitest run $(ARGS)
else
	rm -rf coverage
	c8 vitest run
	node test/support/check-coverage.ts
endif

check: install ## types, lint, format, import rules
	@$(MAKE) --no-print-directory --keep-going --jobs=4 --output-sync=target check-types check-lint check-format check-imports

check-types:
	@tsc -v | grep -q '^Version 7\.' || { echo "tsc is not TypeScript 7 but: $$(tsc -v)"; exit 1; }
	@tsc
	@tsc -p ui/tsconfig.json

# A cached verdict on one file knows nothing of types that changed in another, so `make test` lints without it.
check-lint:
	@eslint $(LINT_CACHE) .

test: export LINT_CACHE =

check-format:
	@prettier --check --log-level warn --cache --cache-strategy content --cache-location $(CACHE)/prettier/checked .

check-imports:
	@node test/support/check-imports.ts

accept: install ## record what a scenario decides now and show what is different from before (SCENARIO=all-p0)
	@files=$$(find scenarios -path 'scenarios/*$(SCENARIO).scenario.yaml' | grep -E '/$(SCENARIO)[.]scenario[.]yaml$$' || true); \
	if [ -z "$(SCENARIO)" ] || [ "$$(echo "$$files" | grep -c .)" != 1 ]; then \
	  echo "make accept SCENARIO=name takes one scenario of scenarios/; that name has: $${files:-none}" >&2; exit 2; \
	fi; \
	exec $(HEADROOM) sim check --update "$$files"

bench: install ## measure decisions and simulated time
	@exec node test/bench/main.ts $(ARGS)

bench-live: install broker ## tasks per second from REST to completion, over a real broker, and what disk and broker can do
	@exec node test/bench/end-to-end.ts $(ARGS)

bench-rest: install broker ## answers of the REST interface against those of a bare server; pages of tasks under load (ARGS="ratios")
	@exec node test/bench/rest/main.ts $(ARGS)

bench-sweep: install ## a sweep on two cores against one, the openb plan, a day of 64 GPUs; wants a quiet machine (ARGS="day openb speedup")
	@exec node test/bench/sweep/main.ts $(ARGS)

bench-memory: install ## resident memory of a controller between 100,000 and 1,000,000 completed tasks; minutes (ARGS="--tasks 100000")
	@exec node --expose-gc test/bench/memory.ts $(ARGS)

# How often, and how long it may take: variables of this name win.
test-faults: export FAULTS_BROKER_KILLS ?= 20
test-faults: export FAULTS_CONTROLLER_KILLS ?= 50
test-faults: export FAULTS_SERVER_STOPS ?= 5
test-faults: install broker ## kill and stop broker, controller and servers under load (FAULTS_BROKER_KILLS=20 …)
	vitest run test/faults --disable-console-intercept=true --no-file-parallelism

# Resumable: STORMS_FROM=7 begins with the seventh. Each takes two minutes at least.
test-storms: export STORMS_COUNT ?= 30
test-storms: export STORMS_SEED ?= 1
test-storms: export STORMS_SECONDS ?= 90
test-storms: export STORMS_KILLS ?= 10
test-storms: export STORMS_TASKS ?= 200
test-storms: install broker ## storms of kills over a cluster of 1 to 4 real servers: nothing lost, nothing twice (STORMS_COUNT=30 STORMS_SEED=1)
	vitest run test/storms --disable-console-intercept=true --no-file-parallelism

# Seed and count may be given; a stall of more than 200 ms fails, so it wants a quiet machine.
test-hostile: export HOSTILE_REQUESTS ?= 50000
test-hostile: export HOSTILE_STALL_MS ?= 200
test-hostile: install ## requests made from the API's own description to break it (HOSTILE_REQUESTS=50000 HOSTILE_SEED=1)
	vitest run test/fuzz/api-hostile.test.ts --disable-console-intercept=true

# promtool comes with Debian's package prometheus. The other tools are fetched once, into node_modules/.cache/contracts.
test-contracts: install ## promtool, Redocly, Spectral and schemathesis against a running controller (CONTRACTS_EXAMPLES=10)
	@exec test/contracts/run.sh

# An hour at first; with what noticed them last, kept in test/mutants/{caught,vain}.json, some seconds each.
mutants: install ## take each rule out in turn: a seed or a directed scenario must notice (ARGS="--anew --rule R4 --seeds 10000 --minutes 3")
	@exec node test/mutants/main.ts $(ARGS)

test-durability: export DURABILITY_KILLS ?= 100
test-durability: export DURABILITY_STARTS ?= 5
test-durability: export DURABILITY_READY_WITHIN_MS ?= 3000
test-durability: install broker ## kill -9 after acknowledged writes, a full disk, one that fails, ready again in 3 s (DURABILITY_KILLS=100 …)
	vitest run test/durability --disable-console-intercept=true --no-file-parallelism

# Every case is a start on a copy of one data folder; a run that was cut off goes on with LOSS_FROM.
test-loss: export LOSS_BITS ?= 1000
test-loss: export LOSS_LOGS ?= 100
test-loss: export LOSS_OLDER ?= 100
test-loss: export LOSS_PROCESSES ?= 20
test-loss: install ## start on data folders with flipped bits, without their logs, with older files: nothing serves with a loss (LOSS_BITS=1000 LOSS_SEED=1 …)
	vitest run test/durability/lost-history.test.ts --disable-console-intercept=true

# Real processes: broker, controller, three servers and their tasks. A run that was cut off goes on with SET_BACK_FROM.
test-set-back: export SET_BACK_WITHIN ?= 10
test-set-back: export SET_BACK_ACROSS ?= 10
test-set-back: export SET_BACK_ALARM_WITHIN_MS ?= 2000
test-set-back: install broker ## set the data folder of a running cluster back: STORE_BEHIND, nothing is killed, nothing runs twice, and the ways out (SET_BACK_WITHIN=10 SET_BACK_ACROSS=10 SET_BACK_SEED=1)
	vitest run test/durability/set-back.test.ts --disable-console-intercept=true

# A Docker engine of its own, without a registry: images come from the build and this host's programs. As root; Debian's packages are installed.
test-containers: install build guard ## the shipped docker-compose.yml on a real Docker engine: a task can read nothing of others; needs root
	@exec node test/containers/main.ts $(DIST)

# Tests run against a real broker. It is installed where that is possible; elsewhere they are left out, and continuous integration fails.
broker:
	@command -v nats-server >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing nats-server"; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nats-server; } >/dev/null && \
	  command -v nats-server >/dev/null && exit 0; \
	fi; \
	echo "no nats-server: as root on Debian or Ubuntu 'apt-get install nats-server', elsewhere https://github.com/nats-io/nats-server/releases"; \
	test -z "$$CI"

# The page is tested in a real browser.
browser:
	@command -v chromium >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing chromium"; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null && \
	  command -v chromium >/dev/null && exit 0; \
	fi; \
	echo "no chromium: as root on Debian 'apt-get install chromium fonts-dejavu-core'"; \
	test -z "$$CI"

test-ui: install ui browser ## the page in a real browser, against a live simulated fleet (ARGS="test/ui/tasks.test.ts")
	vitest run $(or $(ARGS),test/ui)

bench-ui: install ui broker browser ## the page before 10,000 GPUs and 100,000 tasks: first page, first tile, a tick, half an hour's heap; 32,000 bars of a Gantt chart; wants a quiet machine (ARGS="crowded gantt heap")
	@exec node test/bench/ui/main.ts $(ARGS)

fidelity: install broker ## the same scenarios in virtual time and on real processes: decisions and figures side by side; 4 minutes, wants a quiet machine (ARGS="FILE …")
	@exec node test/fidelity/main.ts $(ARGS)

screenshots: install ui browser ## a picture of every screen, for docs/page.md (ARGS="planner debrief")
	@exec node test/support/screenshots.ts $(ARGS)

test-gpu: install ## swap real CUDA processes on this host's NVIDIA GPU; skips where there is none
	@exec node test/gpu/main.ts $(ARGS)

build: install ## emit dist/: what a packed install or an image runs
	rm -rf $(DIST)
	tsc -p tsconfig.build.json --outDir $(DIST)
	DIST=$(DIST) vite build -c ui/vite.config.ts --logLevel warn
	cp cli/require-node.mjs $(DIST)/cli/
	@git rev-parse HEAD > $(DIST)/commit 2>/dev/null || rm -f $(DIST)/commit
	cp $(GUARD)/*.[ch] $(GUARD)/cc-flags $(DIST)/$(GUARD)/

GUARD := gpu-server/guard
guard: $(GUARD)/build/headroom-guard ## compile the guard that each task of a GPU server runs under (needs cc; done on demand too)

$(GUARD)/build/headroom-guard: $(wildcard $(GUARD)/*.[ch]) $(GUARD)/cc-flags
	@mkdir -p $(@D)
	@$(CC) -static @$(GUARD)/cc-flags -o $@.new $(filter %.c,$^) 2>/dev/null || $(CC) @$(GUARD)/cc-flags -o $@.new $(filter %.c,$^)
	@mv $@.new $@

fmt: install ## lay out the sources, and write what is made from them: docs/cli.md, docs/scenario-format.md, the schema and the index of scenarios
	@prettier --write --log-level warn .
	@node test/support/cli-reference.ts
	@node test/support/scenario-reference.ts
	@node test/support/trace-reference.ts

clean: ## remove everything that is not a source
	rm -rf node_modules coverage dist $(GUARD)/build
