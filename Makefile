# `make` alone lists what there is. The work is done by cargo and by scripts/.

CARGO ?= cargo
export CARGO

.DEFAULT_GOAL := help
.PHONY: help build test test-web lint perf-check triton-up triton-down clean-triton

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

build: ## the release binary, target/release/triton-gate
	$(CARGO) build --release --locked

test: ## all tests; the end-to-end tests run against a real Triton
	@scripts/test

test-web: ## checks the workflow files, the requests to GitHub and the comments (needs npm)
	@scripts/test-web

lint: ## formatting, clippy and documentation, each without a warning
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	@if [ -e tests/e2e.rs ]; then set -x; $(CARGO) clippy --locked --test e2e -- -D warnings; fi
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps

# make ends with 2 for whatever failed, so the last line tells the gate's own exit code.
perf-check: export PERF_CHECK_LAST_LINE = 1
perf-check: ## the gate against TRITON_URL, else against a local Triton with the example models
	@scripts/perf-check

triton-up: ## a local Triton with the example models, until make triton-down
	@scripts/triton up

triton-down: ## ends every local Triton of this checkout
	@scripts/triton down --all

clean-triton: triton-down ## removes the local Triton with its baselines
	rm -rf .triton
