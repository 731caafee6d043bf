# Needs git, make, npm and any Node from 20 on: the right Node comes with `npm ci`.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SHELLFLAGS = -ec
.PHONY: help up install test check check-types check-lint check-format check-imports bench build fmt clean

export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
HEADROOM := node --import ./cli/require-node.mjs cli/main.ts
CACHE := node_modules/.cache
LINT_CACHE ?= --cache --cache-strategy content --cache-location $(CACHE)/eslint/

help: ## say what there is
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

up: install ## start the controller with its page; Ctrl-C stops it (ARGS="..." goes to `headroom serve`)
	@exec $(HEADROOM) serve $(ARGS)

# npm 10 drops the link to the Node it has just installed, and everything would silently run on the old one.
node_modules/.package-lock.json: package.json package-lock.json
	@echo "installing dependencies (once, some 20 seconds)"
	@npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
	@rm -f node_modules/.bin/node; for cpu in x64 arm64; do if node_modules/node-linux-$$cpu/bin/node -v >/dev/null 2>&1; then ln -s ../node-linux-$$cpu/bin/node node_modules/.bin/node; fi; done
	@node cli/require-node.mjs
	@touch $@

install: node_modules/.package-lock.json

test: install check ## everything: checks, tests, coverage (ARGS="test/unit/x.test.ts" runs only those tests)
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

# A cached verdict on one file knows nothing of types that changed in another, so `make test` lints without it.
check-lint:
	@eslint $(LINT_CACHE) .

test: export LINT_CACHE =

check-format:
	@prettier --check --log-level warn --cache --cache-strategy content --cache-location $(CACHE)/prettier/checked .

check-imports:
	@node test/support/check-imports.ts

bench: install ## measure decisions and simulated time
	@exec node test/bench/main.ts $(ARGS)

build: install ## emit dist/: what a packed install or an image runs
	rm -rf dist
	tsc -p tsconfig.build.json
	cp cli/require-node.mjs dist/cli/

fmt: install ## lay out the sources
	@prettier --write --log-level warn .

clean: ## remove everything that is not a source
	rm -rf node_modules coverage dist
