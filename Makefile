# Two commands do everything on a fresh Debian machine: `make run` and `make test`. The rest are parts of them.
# All real work is in CMakePresets.json and tools/; this file only names it.
BUDGET ?= 180s
SEED ?=
export PATH := $(CURDIR)/build:$(PATH)

.PHONY: run build test attacks torture study traces lint sanitize clang setup setup-test configure

run: build
	./build/kbeam run batched_qr --target cpu --proposer builtin --budget $(BUDGET) $(if $(SEED),--seed $(SEED))

build: setup configure
	cmake --build build --target kbeam kbeam-runner kernelbeam

# Of what measures real time, a neighbour on the machine can spoil one run: it has to pass once in two.
test: setup-test configure
	cmake --build build
	ctest --preset release -LE measures
	ctest --preset release -L measures --repeat until-pass:2

attacks: setup-test configure
	cmake --build build --target kbeam kbeam-attacks
	./build/kbeam-attacks $(CURDIR) $(CURDIR)/build $(CURDIR)/build/tests/attack_cache

torture: setup-test configure
	cmake --build build --target kbeam kbeam-runner
	tests/torture/torture.py --kbeam build/kbeam --work build/tests/torture_work --out build/torture.json --least 30

# What the decision makes of the A/A traces in tests/study, as docs/study.md: seconds.
study: setup configure
	cmake --build build --target kbeam
	tools/study_page

# New traces for it: 25 minutes of a machine that does nothing else.
traces: build
	tools/record_traces tests/study

lint: setup-test configure
	tools/lint --all

sanitize: setup-test
	cmake --preset asan
	cmake --build --preset asan --target engine_tests
	ctest --preset asan -L engine

# Another compiler, for the engine and for candidates, held to a few tests.
clang: setup-test
	cmake --preset clang
	cmake --build --preset clang --target kbeam kbeam-runner kbeam_build_test kbeam_target_cpu_test
	ctest --preset clang -R 'CompilerTest|Runner|LoadAttack|ExplainFinding|e2e.other_compiler'

setup:
	tools/setup build

setup-test:
	tools/setup build test

configure:
	cmake --preset release $(CMAKE_ARGS)
