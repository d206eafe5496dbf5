# Lode. `make quickstart` to try it, `make test` for all tests, `make help` for the rest.
#
# mk/build.mk    the library, the program, the parser
# mk/test.mk     test programs, sanitizers, fuzzing, everything that `make test` runs
# mk/bench.mk    figures beside the peers, training of the model for code
# mk/install.mk  installing
# mk/dist.mk     self-contained programs for other machines
# mk/packages.mk packages of them, and the tests of these

VERSION  := $(shell sed -n 's/^\#define LODE_VERSION_TEXT "\(.*\)"/\1/p' include/lode.h)
ABI      := $(shell sed -n 's/^\#define LODE_ABI \([0-9]*\).*/\1/p' include/lode.h)
PREFIX   ?= /usr/local
# PLATFORM: empty (that of the compiler), or posix: nothing that only one system has, in a build folder of its own
PLATFORM ?=
BUILD    ?= build$(if $(PLATFORM),/$(PLATFORM))
CC       ?= cc
# SYSTEM: elf or darwin, by the linker that CC uses
SYSTEM   ?= $(if $(filter Darwin,$(shell uname -s)),darwin,elf)
# SAN: empty, asan, tsan, cov or fuzz (with CC=clang); each kind of build has a folder of its own
SAN      ?=
OUT      := $(BUILD)/$(if $(SAN),$(SAN),release)

# V=1 shows the commands
say = $(if $(V),,@printf '  %-3s %s\n' $(1) $@; )
obj = $(patsubst %.c,$(OUT)/%.o,$(1))

.PHONY: all
all: # the first target; mk/build.mk says what it needs

include mk/build.mk
include mk/test.mk
include mk/bench.mk
include mk/install.mk
include mk/dist.mk
include mk/packages.mk

.PHONY: quickstart
quickstart: deps grammars
	@$(MAKE) --no-print-directory -j2 all
	@tools/quickstart.sh $(OUT)/lode

.PHONY: format
format:
	@tools/format.sh

.PHONY: help clean
help:
	@echo "make quickstart   install what is missing, build, index this tree, search it"
	@echo "make test         all tests (sampled by a printed seed); make test-full: every byte, every call"
	@echo "make test PLATFORM=posix   the same with what every Unix has, in build/posix"
	@echo "make check        the tests that need no network and install nothing"
	@echo "make test-busy    all tests beside more busy processes than cores; those that race beside many more"
	@echo "make              the library and the program, in build/release"
	@echo "make grammars     fetch and compile the grammars of programming languages (part of quickstart and test)"
	@echo "make install      PREFIX=/usr/local LIBDIR=PREFIX/lib DESTDIR="
	@echo "make dist         self-contained programs and packages for Linux and macOS, in build/dist/out (docs/PLATFORMS.md)"
	@echo "make deb          Debian packages, in build/deb"
	@echo "make test-dist    what make dist has built, in bare roots and for the other machine"
	@echo "make amalgamation the library as lode.c, lode_gemm.c and lode.h, in build/amalgamation"
	@echo "make format       all C files formatted as .clang-format says"
	@echo "make asan | tsan  the tests of one sanitizer"
	@echo "make coverage     lines and branches that the tests of the library's core reach, written to docs/TESTING.md"
	@echo "make test-outside stores damaged from outside, ROUNDS=1200 of them"
	@echo "make test-chroma  Chroma's own tests and those of libraries, beside Chroma itself (fetches them)"
	@echo "make test-mempalace MemPalace's own tests with Lode's backend, beside its Chroma backend (fetches it)"
	@echo "make test-sqlite  the store's tests with several versions of SQLite"
	@echo "make fuzz         libFuzzer, FUZZ_SECONDS=60 for each target"
	@echo "make bench-code   code search on the Linux tree and others, written to bench/CODE.md"
	@echo "make bench-quality how well code is found (LODE_DATA, LODE_REPOS, LODE_PAIRS name the data)"
	@echo "make bench-agents questions of agents, played with Lode's tools, grep and semble (LODE_REPOS), written to bench/AGENTS.md"
	@echo "make bench-rescue how long a rescue takes, written to bench/RESCUE.md"
	@echo "make bench-python what the Python binding costs, written to bench/PYTHON.md"
	@echo "make bench-serve  lode serve beside the Chroma server, written to bench/SERVE.md"
	@echo "make bench-embed  text to vector beside onnxruntime, written to bench/EMBED.md"
	@echo "make bench-cluster  clusters beside the plain client and the embedded store, written to bench/CLUSTER.md"
	@echo "make bench-vectors  vector search beside other libraries and databases, written to bench/VECTORS.md"
	@echo "make bench-dist   the program of make dist beside the dynamic one, written to docs/PLATFORMS.md"
	@echo "make bench        figures beside the peers, written to bench/RESULTS.md"
	@echo "make bench-space FOLDER=store  where the bytes of a store are"
	@echo "make bench-large  a vector index larger than its memory (ROWS, DIM, BUDGET)"
	@echo "make bench-against REV=r  adds, batches, queries and opening beside those of revision r, and their instructions"

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) \( -path $(BUILD)/dist/src -o -path $(BUILD)/dist/chroot \) -prune -o -name '*.d' -type f -print 2>/dev/null)
