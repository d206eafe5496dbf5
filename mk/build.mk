# The library, the program lode and its parser.

PKGS     := sqlite3 libpcre2-8 libutf8proc
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS))
PKG_LIBS   = $(shell pkg-config --libs $(PKGS))

# Packagers bring their own level of checks
OPT.      := -O2 $(if $(findstring _FORTIFY_SOURCE,$(CFLAGS)),,-D_FORTIFY_SOURCE=2)
OPT.asan  := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -DLODE_CHECKED
OPT.tsan  := -O1 -fsanitize=thread -fno-omit-frame-pointer -DLODE_CHECKED
# Coverage: unoptimised, so that branches are those of the source
OPT.cov   := -O0 --coverage -fprofile-update=prefer-atomic -DLODE_CHECKED -DLODE_COVERAGE
OPT.fuzz  := -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
# -Werror with the compilers that CI knows
WERROR    ?= $(shell tools/werror.sh $(CC))
WARN      := $(WERROR) -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
HARDEN    := -fstack-protector-strong $(if $(filter elf,$(SYSTEM)),-fstack-clash-protection) -fPIC
# What linkers are told, and how libraries are named
LDHARDEN.elf    := -Wl,-z,relro,-z,now -Wl,-z,noexecstack
LDHARDEN.darwin :=
LIB_FILE.elf    := liblode.so.$(VERSION)
LIB_FILE.darwin := liblode.$(VERSION).dylib
LIB_ABI.elf     := liblode.so.$(ABI)
LIB_ABI.darwin  := liblode.$(ABI).dylib
LIB_LINK.elf    := liblode.so
LIB_LINK.darwin := liblode.dylib
LIB_LD.elf      := -shared -Wl,-soname,$(LIB_ABI.elf)
LIB_LD.darwin   := -dynamiclib -Wl,-install_name,@rpath/$(LIB_ABI.darwin)
LIB_FILE        := $(LIB_FILE.$(SYSTEM))
LIB_ABI         := $(LIB_ABI.$(SYSTEM))
LIB_LINK        := $(LIB_LINK.$(SYSTEM))
# Distances must be the same on every CPU: the compiler must not fuse multiplications and additions
CFLAGS_ALL = -std=c11 -D_GNU_SOURCE -Iinclude -Isrc/lib -Isrc/app -g -fvisibility=hidden -ffp-contract=off $(OPT.$(SAN)) $(WARN) $(HARDEN) \
             $(PKG_CFLAGS) $(CFLAGS)
ifeq ($(PLATFORM),posix)
CFLAGS_ALL += -DLODE_PLATFORM_POSIX
endif
LDFLAGS_ALL = $(OPT.$(SAN)) $(LDHARDEN.$(SYSTEM)) $(LDFLAGS)
LIBS       = $(PKG_LIBS) -lpthread -lm -ldl
# Objects that self-contained builds link in (mk/dist.mk)
LIB_EXTRA ?=
LODE_EXTRA ?=
PARSER_EXTRA ?=

LIB_SRC    := $(sort $(wildcard src/lib/*/*.c))
PARSER_SRC := $(sort $(wildcard src/app/parser/*.c))
MAIN_SRC   := src/app/cli/cli_main.c
APP_SRC    := $(filter-out $(PARSER_SRC) $(MAIN_SRC),$(sort $(wildcard src/app/*/*.c)))
# The web page and the documents, as arrays of bytes
PAGE       := $(BUILD)/web/page.c
PAGE_OBJ   := $(OUT)/web/page.o
DOCS       := $(BUILD)/web/docs_pages.c
DOCS_OBJ   := $(OUT)/web/docs_pages.o

# Archives for what is built here: programs and tests may reach inside
LIB_ALL    := $(OUT)/inside/lib.a
APP_ALL    := $(OUT)/inside/app.a
INSIDE     := $(APP_ALL) $(LIB_ALL)

# Grammars are compiled once for all kinds of builds and platforms. lode-parser is built where tree-sitter's source has been fetched.
# Programs of a platform lie one folder deeper, and look for the models of this tree as the others do.
GRAMMARS   := $(BUILD)/grammars
$(if $(PLATFORM),$(shell mkdir -p $(BUILD) $(BUILD)/../models && ln -sfn ../grammars $(BUILD)/grammars && ln -sfn ../../models/code $(BUILD)/../models/code))
TS         := $(GRAMMARS)/npm/node_modules/tree-sitter/vendor/tree-sitter/lib
PARSER_OBJ := $(call obj,$(PARSER_SRC))
PARSER     := $(if $(wildcard $(TS)/src/lib.c),$(OUT)/lode-parser)

all: $(OUT)/liblode.a $(OUT)/$(LIB_FILE) $(OUT)/lode $(PARSER)

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(PAGE): tools/page.sh $(sort $(wildcard web/*))
	$(call say,WEB)tools/page.sh $(@D)
$(DOCS): tools/docs.sh README.md $(sort $(wildcard docs/*.md))
	$(call say,DOC)tools/docs.sh $(@D)
$(PAGE_OBJ) $(DOCS_OBJ): $(OUT)/web/%.o: $(BUILD)/web/%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# The encoder's arithmetic: fused multiply-adds are welcome there, and unoptimised it would take minutes in tests
$(call obj,$(sort $(wildcard src/lib/gemm/*.c))): CFLAGS += -O2 -ffp-contract=fast
# Where models are looked for last; an installed program looks below its own prefix, wherever that is
$(call obj,src/lib/embed/embed_models.c): CFLAGS += -DLODE_PREFIX='"$(PREFIX)"'

$(LIB_ALL): $(call obj,$(LIB_SRC))
$(APP_ALL): $(call obj,$(APP_SRC)) $(PAGE_OBJ) $(DOCS_OBJ)
$(INSIDE):
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

# The static library for others has one object, whose only global names are those of lode.h, where ELF's tools can make it
AR_LIB.elf    = ld -r -o $(OUT)/inside/lode.o $^ && objcopy --localize-hidden $(OUT)/inside/lode.o && ar rcs $@ $(OUT)/inside/lode.o
AR_LIB.darwin = $(AR) rcs $@ $^
$(OUT)/liblode.a: $(call obj,$(LIB_SRC))
	@rm -f $@
	$(call say,AR)$(AR_LIB.$(SYSTEM))
$(OUT)/liblode.a: | $(LIB_ALL)

$(OUT)/$(LIB_FILE): $(call obj,$(LIB_SRC)) $(LIB_EXTRA)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) $(LIB_LD.$(SYSTEM)) -o $@ $^ $(LIBS)
	@ln -sf $(LIB_FILE) $(OUT)/$(LIB_ABI)
	@ln -sf $(LIB_ABI) $(OUT)/$(LIB_LINK)

# libmicrohttpd is loaded when a server starts (src/app/server/mhd.h)
$(OUT)/lode: $(call obj,$(MAIN_SRC)) $(LODE_EXTRA) $(INSIDE)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)

$(PARSER_OBJ): CFLAGS_ALL += -isystem $(TS)/include
$(OUT)/tree-sitter.o: $(TS)/src/lib.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c11 -D_GNU_SOURCE -w -g $(OPT.$(SAN)) $(if $(SAN),,-O3 -fno-semantic-interposition) -fPIC \
	  -fvisibility=hidden -I$(TS)/include -I$(TS)/src -c -o $@ $<
$(OUT)/lode-parser: $(PARSER_OBJ) $(OUT)/tree-sitter.o $(PARSER_EXTRA) $(INSIDE)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)

.PHONY: grammars
grammars:
	@tools/grammars.sh $(GRAMMARS)
	@$(if $(PARSER)$(filter-out grammars,$(MAKECMDGOALS)),:,echo "grammars: now run make, which builds lode-parser with them")

DEPS_BUILD := gcc make pkg-config libc6-dev libsqlite3-dev libpcre2-dev libutf8proc-dev libcurl4-openssl-dev libmicrohttpd-dev
.PHONY: deps
deps:
	@tools/deps.sh $(DEPS_BUILD)

# The library as two C files and a header, in build/amalgamation
.PHONY: amalgamation
amalgamation: all
	@LODE_LIB=$(LIB_ALL) tools/amalgamation.sh $(BUILD)/amalgamation

# Are the code and the constants of every object those of REV? For commits that only rename, move or format.
.PHONY: same-code
same-code:
	@tools/same-code.sh $(REV)
