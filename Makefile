# Requires git, make, npm and any Node from 20 on; `npm ci` installs the Node that runs everything.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SHELLFLAGS = -ec
.PHONY: help up live install install-serving ui test check check-types check-lint check-format check-imports
.PHONY: check-exports broker browser engine
.PHONY: build guard fmt clean accept screenshots mutants fidelity structure
.PHONY: bench bench-live bench-rest bench-proxy bench-gateway bench-memory bench-sweep bench-ui
.PHONY: test-ui test-gpu test-kills test-faults test-storms test-durability test-loss test-set-back test-hostile
.PHONY: test-serving test-ha test-worlds bench-store
.PHONY: images list-images kubernetes-tools test-kubernetes test-kubernetes-storm bench-kubernetes
.PHONY: test-contracts test-containers test-ha-compose test-container-storm test-package test-tutorial package-contents python wheel

# Debian installs nats-server in /usr/sbin, which is not on a user's PATH.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH):/usr/sbin
HEADROOM := node --import ./cli/require-node.mjs -- cli/main.ts
CACHE := node_modules/.cache
DIST ?= dist
PACKAGES := package.json package-lock.json ui/package.json tools/node/package.json
# Marks of the two installations: all packages, and without those for development.
COMPLETE := node_modules/.complete
SERVING := node_modules/.serving

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile

# Each simulated fleet gets its own data folder. With a broker the default data folder is used.
DEMO_SCENARIO = $(or $(patsubst %.scenario,%,$(basename $(notdir $(CONTROLLER_SIMULATED_FLEET)))),live-demo)
up: export CONTROLLER_DATA_DIR ?= $(if $(CONTROLLER_NATS_URL),./data,./data/demo/$(DEMO_SCENARIO))
# ARGS is passed to `headroom serve`.
up: $(SERVING) ui ## start the controller with a simulated fleet and the web page; Ctrl-C stops it
	@exec $(HEADROOM) serve $(ARGS)

live: $(SERVING) ui ## start a broker, a controller and four GPU servers with real processes; Ctrl-C stops them
	@exec $(HEADROOM) live $(ARGS)

# npm 10 deletes the link to the Node that it has just installed. Without the link an older system Node runs.
define npm_ci
	@npm ci --ignore-scripts --no-fund --no-audit --loglevel=error $(1)
	@rm -f node_modules/.bin/node; for cpu in x64 arm64; do \
	  if node_modules/node-linux-$$cpu/bin/node -v >/dev/null 2>&1; then \
	    ln -s ../node-linux-$$cpu/bin/node node_modules/.bin/node; \
	  fi; \
	done
	@node cli/require-node.mjs
endef

$(COMPLETE): $(PACKAGES)
	@echo "installing dependencies (once, about 20 seconds)"
	$(call npm_ci)
	@touch $@ $(SERVING)

# An installation with everything stays complete when the list of packages changes.
$(SERVING): $(PACKAGES)
	@if [ -e $(COMPLETE) ]; then $(MAKE) --no-print-directory $(COMPLETE); else \
	  $(MAKE) --no-print-directory install-serving; fi
	@touch $@

install-serving:
	@echo "installing what the controller and its page need (once, about 10 seconds)"
	$(call npm_ci,--omit=dev)

install: $(COMPLETE)

UI := $(shell find ui -type f -not -name tsconfig.json)
ui: $(DIST)/ui/index.html ## build the web page into dist/ui if its sources have changed

$(DIST)/ui/index.html: $(UI) $(SERVING)
	@echo "building the page (about 3 seconds)"
	@DIST=$(DIST) vite build -c ui/vite.config.ts --logLevel warn

# ARGS=test/unit/x.test.ts runs only these tests, without coverage.
test: install ui broker ## run the tests that need no browser, no kills and no real leases, and check coverage
ifdef ARGS
	vitest run $(ARGS)
else
	rm -rf coverage
	c8 tools/tests/run-together.sh
	node tools/coverage/check-coverage.ts
endif

check: install ## check types, lint, format, import rules, and that every file and export is used
	@$(MAKE) --no-print-directory --keep-going --jobs=4 --output-sync=target \
	  check-types check-lint check-format check-imports check-exports

check-types:
	@tsc -v | grep -q '^Version 7\.' || { echo "tsc is not TypeScript 7 but: $$(tsc -v)"; exit 1; }
	@tsc
	@tsc -p ui/tsconfig.json

# The cache is per file and misses type changes in other files; continuous integration starts without one.
check-lint:
	@eslint --cache --cache-strategy content --cache-location $(CACHE)/eslint/ .

check-format:
	@prettier --check --log-level warn --cache --cache-strategy content \
	  --cache-location $(CACHE)/prettier/checked .

check-imports:
	@node tools/imports/check-imports.ts

check-exports:
	@knip --config tools/imports/knip.json --include files,exports,dependencies

structure: install ## print how the sources hang together: circles, reach, lines (ARGS="--list")
	@exec node tools/structure/figures.ts $(ARGS)

# SCENARIO=all-p0 names the scenario.
accept: install ## record a scenario's new expected result and show the differences
	@files=$$(grep -rlx 'scenario: $(SCENARIO)' scenarios --include='*.scenario.yaml' || true); \
	if [ -z "$(SCENARIO)" ] || [ "$$(echo "$$files" | grep -c .)" != 1 ]; then \
	  echo "SCENARIO must name one scenario in scenarios/. Found: $${files:-none}" >&2; exit 2; \
	fi; \
	exec $(HEADROOM) sim check --update "$$files"

bench: install ## measure decisions per second and simulation speed
	@exec node test/bench/main.ts $(ARGS)

bench-live: install broker ## measure tasks per second from REST to completion over a real broker
	@exec node test/bench/end-to-end.ts $(ARGS)

bench-store: install ## measure durable submissions per second: PostgreSQL against SQLite
	@exec node test/bench/store-rate.ts $(ARGS)

# ARGS=ratios runs the comparison with a bare HTTP server only.
bench-rest: install broker ## measure the REST API: against a bare HTTP server, and task lists under load
	@exec node test/bench/rest/main.ts $(ARGS)

bench-proxy: install guard ## measure the proxy of a task: against nginx's stream module, and 1,000 held connections
	@exec node test/bench/proxy/main.ts $(ARGS)

bench-gateway: install guard ## measure headroom gateway against the proxy and the port of a task (needs curl)
	@exec node test/bench/gateway/main.ts

# ARGS selects measurements: day, openb, speedup.
bench-sweep: install ## measure sweeps: two cores against one, openb, a day of 64 GPUs (idle machine)
	@exec node test/bench/sweep/main.ts $(ARGS)

# Needs the programs of `make kubernetes-tools`. ARGS="NODES PODS ALL_PODS" changes the load.
bench-kubernetes: install ## measure the operator with a real scheduler: 1,000 nodes, 10,000 pods (idle machine)
	@exec node test/bench/kubernetes/main.ts $(ARGS)

# ARGS="--tasks 100000" sets the number of tasks.
bench-memory: install ## measure controller memory between 100,000 and 1,000,000 completed tasks (minutes)
	@exec node --expose-gc test/bench/memory.ts $(ARGS)

# HEADROOM_RUNS multiplies the cases, HEADROOM_SEED sets the seed.
test-worlds: export HEADROOM_RUNS ?= 20
test-worlds: install ## check properties over 20 times the drawn cases of `make test`
	vitest run test/property

# Each of these tests once; test-faults, test-storms, test-durability, test-loss and test-set-back repeat them.
# SERVING_REQUESTS=300 makes the loop longer.
test-serving: install broker ## let three model servers share a GPU that fits one, and print how fast they wake
	vitest run --project serving --no-file-parallelism

test-kills: install broker ## run each test with kills, real leases or real time once (about 8 minutes)
	vitest run --project kills --no-file-parallelism

# Environment variables of these names override the counts.
test-faults: export FAULTS_BROKER_KILLS ?= 20
test-faults: export FAULTS_CONTROLLER_KILLS ?= 50
test-faults: export FAULTS_SERVER_STOPS ?= 5
test-faults: install broker ## kill and stop broker, controller and GPU servers under load
	vitest run test/faults --disable-console-intercept=true --no-file-parallelism

# STORMS_FROM=7 resumes at the seventh storm. Each storm takes at least two minutes.
test-storms: export STORMS_COUNT ?= 30
test-storms: export STORMS_SEED ?= 1
test-storms: export STORMS_SECONDS ?= 90
test-storms: export STORMS_KILLS ?= 10
test-storms: export STORMS_TASKS ?= 200
test-storms: install broker ## kill processes at random in a cluster of 1 to 4 GPU servers
	vitest run test/storms --disable-console-intercept=true --no-file-parallelism

# HOSTILE_SEED sets the seed. A stall of more than 200 ms fails the test, so use an idle machine.
test-hostile: export HOSTILE_REQUESTS ?= 50000
test-hostile: export HOSTILE_STALL_MS ?= 200
test-hostile: install ## send hostile requests, generated from the OpenAPI document, to the REST API
	vitest run test/fuzz/api-hostile.test.ts --disable-console-intercept=true

# The tools are downloaded once, into node_modules/.cache/contracts; promtool from Debian's package prometheus.
# CONTRACTS_EXAMPLES=10 sets the number of examples per operation, CONTRACTS_SEED=1 the seed.
test-contracts: install ## run promtool, Redocly, Spectral and schemathesis against a controller
	@exec test/contracts/run.sh

wheel: ## build the Python package into dist/python
	@exec clients/python/check.sh $(DIST)/python wheel

# PYTHONS="python3.10 python3.14" names the interpreters; without it 3.9, 3.11 and 3.13, as far as installed.
python: install broker ## build the Python package into dist/python, and test it against a real cluster
	@exec clients/python/check.sh $(DIST)/python

# The first run takes an hour. Later runs try first what caught each mutant before
# (test/mutants/{caught,vain}.json): a few seconds each.
# ARGS="--rule R4 --seeds 10000 --minutes 3" limits the run.
mutants: install ## mutation testing: remove each rule in turn; a fuzz seed or a scenario must fail
	@exec node test/mutants/main.ts $(ARGS)

test-durability: export DURABILITY_KILLS ?= 100
test-durability: export DURABILITY_STARTS ?= 5
test-durability: export DURABILITY_READY_WITHIN_MS ?= 3000
test-durability: install broker ## kill after acknowledged writes; full and failing disks; restart time
	vitest run test/durability --disable-console-intercept=true --no-file-parallelism

# HA_FAULTS, HA_CUTS and DURABILITY_KILLS set the counts. Needs PostgreSQL's programs: initdb and postgres.
test-ha: export HA_FAULTS ?= 20
test-ha: export HA_PRIMARY_KILLS ?= 20
test-ha: export HA_CUTS ?= 200
test-ha: export HA_LEADER_LOSSES ?= 70
test-ha: export HA_HANDOVERS ?= 20
test-ha: export HA_OPEN_TASKS ?= 10000
test-ha: export HA_OWN_WRITES ?= 10000
test-ha: export HA_STANDBY_SECONDS ?= 100
test-ha: export HA_STANDBY_LAG_MS ?= 200
test-ha: export HA_FROZEN_MS ?= 30000
test-ha: export HA_SERVER_STOPS ?= 20
test-ha: export HA_STEADY_SECONDS ?= 1800
test-ha: export HA_CLOCK_TAKEOVERS ?= 10
test-ha: export HA_FIRST_201_WITHIN_MS ?= 5000
test-ha: export HA_FIRST_201_P95_WITHIN_MS ?= 3000
test-ha: export HA_FIRST_START_P95_WITHIN_MS ?= 5000
test-ha: export DURABILITY_STORE = postgres
test-ha: export DURABILITY_KILLS ?= 100
test-ha: install ## kill a controller on PostgreSQL; kill, freeze, restart, fill, cut off and promote PostgreSQL
	vitest run test/ha test/durability/acknowledged-writes.test.ts --disable-console-intercept=true \
	  --no-file-parallelism
	@exec node test/bench/store-rate.ts

# HA_STORM_FROM=7 resumes at the seventh loop, HA_STORM_SEED draws others. A loop takes up to 3 s.
test-ha-storm: export HA_STORM_LOOPS ?= 1000
test-ha-storm: export HA_STORM_SEED ?= 1
test-ha-storm: install broker ## kill, stop and cut off the leader of two controllers again and again, with GPU servers
	vitest run test/ha-storms --disable-console-intercept=true --no-file-parallelism

# Each case starts a controller on a copy of one data folder. LOSS_SEED sets the seed, LOSS_FROM resumes.
test-loss: export LOSS_BITS ?= 1000
test-loss: export LOSS_LOGS ?= 100
test-loss: export LOSS_OLDER ?= 100
test-loss: export LOSS_PROCESSES ?= 20
test-loss: install ## start on damaged, incomplete or older data folders: no start serves after a loss
	vitest run test/durability/lost-history.test.ts --disable-console-intercept=true

# Real processes: broker, controller, three GPU servers and their tasks. SET_BACK_SEED sets the seed;
# SET_BACK_FROM resumes a run.
test-set-back: export SET_BACK_WITHIN ?= 10
test-set-back: export SET_BACK_ACROSS ?= 10
test-set-back: export SET_BACK_ALARM_WITHIN_MS ?= 2000
test-set-back: install broker ## restore an older data folder under a running cluster: no task is killed
	vitest run test/durability/set-back.test.ts --disable-console-intercept=true

# Starts its own Docker engine in its own namespaces, without a registry: images are made from the build and
# this host's programs.
test-containers: install engine build guard ## run docker-compose.yml and tasks with an image on real engines (needs root)
	@node test/containers/main.ts compose $(DIST)
	@for engine in docker podman; do for proof in push tasks; do \
	  node test/containers/main.ts $$proof $$engine || exit 1; done; done

# The same for deploy/compose/two-controllers.yml, with PostgreSQL's programs of this host.
test-ha-compose: install engine build guard ## kill the leading container of the Compose example with two controllers (needs root)
	@node test/containers/main.ts two $(DIST)

# CONTAINER_SEED sets the seed of the storm, CONTAINER_ENGINES="docker" its engines.
test-container-storm: export CONTAINER_TASKS ?= 100
test-container-storm: export CONTAINER_KILLS ?= 20
test-container-storm: CONTAINER_ENGINES ?= docker podman
test-container-storm: install engine guard ## kill server and broker while 100 tasks run in containers (needs root)
	@for engine in $(CONTAINER_ENGINES); do node test/containers/main.ts tasks $$engine || exit 1; done

# $(call installed,PROGRAMS,PACKAGES) ends the recipe once all programs exist. As root it installs the packages.
installed = missing() { for program in $(1); do command -v $$program >/dev/null || echo $$program; done; }; \
	test -z "$$(missing)" && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing $(2)"; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -y -qq --no-install-recommends $(2); } >/dev/null && \
	  test -z "$$(missing)" && exit 0; \
	fi;

# Integration tests need a real broker. It is installed where possible. Without it those tests are skipped,
# and continuous integration fails.
broker:
	@$(call installed,nats-server,nats-server) \
	echo "nats-server not found. Debian, Ubuntu (as root): apt-get install nats-server. Other systems:"; \
	echo "https://github.com/nats-io/nats-server/releases"; \
	test -z "$$CI"

# Tests of the web page need a real browser.
browser:
	@$(call installed,chromium,chromium fonts-dejavu-core) \
	echo "chromium not found. Debian (as root): apt-get install chromium fonts-dejavu-core"; \
	test -z "$$CI"

ENGINE := dockerd docker docker-compose podman busybox nats-server
# test/containers/main.ts names what is still missing.
engine:
	@$(call installed,$(ENGINE),docker.io docker-compose podman netavark busybox-static nats-server) true

# ARGS=test/ui/tasks.test.ts runs only these tests. SCANS=one draws one state of each page.
test-ui: export SCANS ?= all
test-ui: install ui broker browser ## test the web page in a browser against a simulated fleet
	vitest run $(or $(ARGS),test/ui)

# ARGS selects measurements: crowded, gantt, heap.
bench-ui: install ui broker browser ## measure the web page with 10,000 GPUs and 100,000 tasks (idle machine)
	@exec node test/bench/ui/main.ts $(ARGS)

# ARGS="FILE …" names the scenarios.
fidelity: install broker ## compare simulated runs with real processes, the learning twin included (8 minutes, idle machine)
	@node test/fidelity/main.ts $(ARGS)
	@exec node test/fidelity/learned/main.ts

# ARGS="planner debrief" takes these only.
screenshots: install ui browser ## take the screenshots of docs/page.md
	@exec node tools/screenshots/screenshots.ts $(ARGS)

test-gpu: install ## swap CUDA processes on this host's NVIDIA GPU; skipped without one
	@exec node test/gpu/main.ts $(ARGS)

build: install ## compile into dist/, which packages and images run
	rm -rf $(DIST)
	tsc -p tsconfig.build.json --outDir $(DIST)
	DIST=$(DIST) vite build -c ui/vite.config.ts --logLevel warn
	cp cli/require-node.mjs $(DIST)/cli/
	@git rev-parse HEAD > $(DIST)/commit 2>/dev/null || rm -f $(DIST)/commit
	cp $(GUARD)/*.[ch] $(GUARD)/cc-flags $(DIST)/$(GUARD)/

# `npm pack` runs this first. The package carries its dependencies, without files that are never loaded.
package-contents: build
	@node tools/package/strip-packages.ts .
	@find $(addprefix $(DIST)/,cli gpu-server operator services simulator) -name '*.d.ts' -delete

# Packs, installs the npm package into an empty folder and the Debian packages into a clean Debian root.
test-package: install guard ## test the npm and Debian packages: contents, size, installation, first run (minutes)
	vitest run --project package --disable-console-intercept=true --no-file-parallelism

# As root; the packages are built first, by the commands of the tutorials.
test-tutorial: install guard ## type the commands of docs/tutorials into a clean Debian and compare their output
	vitest run --project tutorials --disable-console-intercept=true --no-file-parallelism

deb: install guard ## build Debian packages of command line, controller, GPU server and gateway into dist-deb/
	@deploy/debian/build.sh $(CURDIR)/dist-deb

# ENGINE=podman, REGISTRY=registry.example/team, PUSH=1, BUILD_OPTIONS="--build-arg …": deploy/images/build.sh
images: ## build the images of controller and GPU server, tagged with the version, and print their digests
	@deploy/images/build.sh $(VERSION)

list-images: ## print the images of the operator stack with their digests, for sites without the Internet
	@deploy/images/list.sh

GUARD := gpu-server/guard
guard: $(GUARD)/build/headroom-guard ## compile the guard that supervises each task (needs cc)

$(GUARD)/build/headroom-guard: $(wildcard $(GUARD)/*.[ch]) $(GUARD)/cc-flags
	@mkdir -p $(@D)
	@$(CC) -static @$(GUARD)/cc-flags -o $@.new $(filter %.c,$^) 2>/dev/null || \
	  $(CC) @$(GUARD)/cc-flags -o $@.new $(filter %.c,$^)
	@mv $@.new $@

# PROGRAMS="etcd kube-apiserver kubectl" builds only these. GO_JOBS=1 uses one core.
kubernetes-tools: ## build etcd, Kubernetes and Helm from Go modules into .tools (needs Go; 6 minutes, once)
	@tools/kubernetes/build.sh .tools $(PROGRAMS)

# Skipped, with the reason, without the programs of `make kubernetes-tools`.
test-kubernetes: install ## test the operator stack on a real etcd and kube-apiserver
	vitest run --project kubernetes --no-file-parallelism

# KUBERNETES_STORM_FROM=3 resumes at the third storm, KUBERNETES_STORM_TURNS_FROM=50 at that turn; a count of 0
# leaves a part out. A storm takes 5 minutes, a turn 15 seconds, a restart 30 seconds, the change of the
# authorities 23 minutes.
test-kubernetes-storm: export KUBERNETES_STORM_COUNT ?= 6
test-kubernetes-storm: export KUBERNETES_STORM_SEED ?= 1
test-kubernetes-storm: export KUBERNETES_STORM_FAULTS ?= 5
test-kubernetes-storm: export KUBERNETES_STORM_API_FAULTS ?= 2
test-kubernetes-storm: export KUBERNETES_STORM_PLANNED ?= 4
test-kubernetes-storm: export KUBERNETES_STORM_PODS ?= 40
test-kubernetes-storm: export KUBERNETES_STORM_TURNS ?= 200
test-kubernetes-storm: export KUBERNETES_STORM_RESTARTS ?= 20
test-kubernetes-storm: export KUBERNETES_STORM_AUTHORITY ?= 1
test-kubernetes-storm: install ## kill and stop every component of the operator stack while pods come and go
	vitest run --project kubernetes --disable-console-intercept=true --no-file-parallelism \
	  $(addprefix test/kubernetes/,storm.test.ts paused-leader.test.ts restarts.test.ts authority-change.test.ts)

fmt: install ## format the sources and regenerate the documents that are made from code
	@prettier --write --log-level warn .
	@node tools/reference/cli-reference.ts
	@node tools/reference/scenario-reference.ts
	@node tools/reference/trace-reference.ts
	@node tools/reference/custom-resources.ts
	@node tools/reference/webhooks.ts

clean: ## remove installed packages and build output
	rm -rf node_modules coverage dist $(GUARD)/build
