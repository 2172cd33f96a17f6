# Two commands do everything on a fresh Debian machine: `make run` and `make test`. The rest are parts of them.
# All real work is in CMakePresets.json and tools/; this file only names it.
BUDGET ?= 180s
SEED ?=
export PATH := $(CURDIR)/build:$(PATH)

.PHONY: run build test attacks lint sanitize setup setup-test configure

run: build
	./build/kbeam run batched_qr --target cpu --proposer builtin --budget $(BUDGET) $(if $(SEED),--seed $(SEED))

build: setup configure
	cmake --build build --target kbeam kbeam-runner kernelbeam

test: setup-test configure
	cmake --build build
	ctest --preset release

attacks: setup-test configure
	cmake --build build --target kbeam kbeam-attacks
	./build/kbeam-attacks $(CURDIR) $(CURDIR)/build $(CURDIR)/build/tests/attack_cache

lint: setup-test configure
	tools/lint --all

sanitize: setup-test
	cmake --preset asan
	cmake --build --preset asan --target engine_tests
	ctest --preset asan -L engine

setup:
	tools/setup build

setup-test:
	tools/setup build test

configure:
	cmake --preset release $(CMAKE_ARGS)
