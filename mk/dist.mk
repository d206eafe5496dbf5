# Self-contained programs for other machines: `make dist`, which packs them (mk/packages.mk). docs/PLATFORMS.md has the targets and what is tried.
#
# One compiler (zig) builds for all targets; it and the libraries that are linked in come from deps/dist/sources.txt. Programs for Linux
# are linked statically with musl, those for macOS with libSystem alone. The shared library is made for old and new glibc, musl and macOS.

DIST         := $(BUILD)/dist
DIST_SRC     := $(DIST)/src
DIST_ZIG     := $(CURDIR)/$(DIST_SRC)/zig/ziglang/zig
# DIST_TARGETS= names those to be built
DIST_TARGETS ?= x86_64-linux-musl aarch64-linux-musl aarch64-macos x86_64-macos
DIST_PROGRAM := x86_64-linux-musl aarch64-linux-musl aarch64-macos x86_64-macos
DIST_GLIBC   := x86_64-linux-gnu.2.17 aarch64-linux-gnu.2.17
DIST_MACOS   := 11.0
# How many compilers run at a time
DIST_JOBS    ?= $(shell getconf _NPROCESSORS_ONLN)
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

.PHONY: dist-fetch
dist-fetch:
	@tools/dist/fetch.sh $(DIST_SRC)

# What targets have of their own, by the system in their names: dist_X.linux-musl, dist_X.linux-gnu.2.17, dist_X.macos
dist_system = $(patsubst x86_64-%,%,$(patsubst aarch64-%,%,$(1)))
dist_of     = $(dist_$(2).$(call dist_system,$(1)))

DIST_HTTP   := sqlite pcre2 utf8proc curl mbedtls
dist_libs.linux-musl     := $(DIST_HTTP) microhttpd mimalloc
dist_libs.linux-gnu.2.17 := $(DIST_HTTP)
dist_libs.macos          := $(DIST_HTTP) microhttpd
# lode keeps its symbol table, for the names in crash reports. musl gives threads the stack size that the program's header asks for.
dist_link.linux-musl := -static -Wl,-z,stack-size=8388608
dist_link.macos      :=
# In place of what the C library does not bring (tools/dist/static)
dist_static.linux-musl := dlfcn cpu_model execinfo sort
dist_static.macos      := dlfcn cpu_model
dist_more.linux-musl := -lunwind
dist_flags.linux-musl     := -Itools/dist/static -isystem $(DIST_SRC)/zig/ziglang/lib/libunwind/include -include tools/dist/static/old_musl.h -DLODE_EXECINFO
dist_flags.linux-gnu.2.17 := -include tools/dist/static/old_glibc.h
# Both programs are linked with the same options and stripped afterwards: zig compiles musl once for each kind of link. What is linked for macOS
# is signed, and not touched later.
dist_strip := -Wl,--strip-all
dist_strip_debug.linux-musl := llvm-strip --strip-debug
dist_strip_debug.macos      := :
dist_strip_all.linux-musl   := llvm-strip --strip-all
dist_strip_all.macos        := :
dist_link_parser.macos      := $(dist_strip)
dist_version.macos := .$(DIST_MACOS)

dist_cc = $(DIST_ZIG) cc -target $(1)$(call dist_of,$(1),version) -g0
dist_ar = $(DIST_ZIG) ar
dist_lib_files = $(foreach l,$(filter-out $(3),$(call dist_of,$(1),libs)),$(DIST)/$(1)/libs/lib$(l).a) $(call dist_of,$(1),more)
dist_obj = $(foreach o,$(2),$(DIST)/$(1)/release/tools/dist/static/$(o).o)
# $(call dist_make,TARGET,WHAT): builds files of Lode for a target. No debug information and no paths: the same bytes in every folder.
dist_make = $(MAKE) --no-print-directory -j$(DIST_JOBS) BUILD=$(DIST)/$(1) SAN= PLATFORM= SYSTEM=$(if $(findstring macos,$(1)),darwin,elf) \
  CC="$(call dist_cc,$(1))" AR="$(dist_ar)" WERROR= PREFIX=/usr/local HARDEN="-fstack-protector-strong -fPIC" \
  CFLAGS="-g0 -fno-sanitize=undefined -ffile-prefix-map=$(CURDIR)=. -DCURL_STATICLIB -DLODE_GRAMMARS_LINKED -funwind-tables $(call dist_of,$(1),flags)" \
  PKG_CFLAGS="-isystem $(DIST)/$(1)/libs/include" TS=$(DIST_SRC)/grammars/node_modules/tree-sitter/vendor/tree-sitter/lib $(2)

.PHONY: $(addprefix dist-libs-,$(DIST_PROGRAM) $(DIST_GLIBC)) $(addprefix dist-lode-,$(DIST_PROGRAM)) $(addprefix dist-shared-,$(DIST_PROGRAM) $(DIST_GLIBC))
$(addprefix dist-libs-,$(DIST_PROGRAM) $(DIST_GLIBC)): dist-libs-%: dist-fetch
	@$(MAKE) --no-print-directory -j$(DIST_JOBS) -f tools/dist/libs.mk SRC=$(DIST_SRC) OUT=$(DIST)/$*/libs LIBS="$(call dist_of,$*,libs)" \
	  CC="$(call dist_cc,$*)" AR="$(dist_ar)" all

# A sum of the sources is put beside what is built of them, once it is built: packages are made of one state (tools/dist/sources.sh)
dist_sources = $(DIST)/$(1)/release/$(2).sources
dist_before  = mkdir -p $(DIST)/$(1)/release && rm -f $(dist_sources) && tools/dist/sources.sh >$(dist_sources).now
dist_after   = mv $(dist_sources).now $(dist_sources)

# lode, and lode-parser with all grammars; always linked, because make does not see the libraries
$(addprefix dist-lode-,$(DIST_PROGRAM)): dist-lode-%: dist-libs-%
	@$(call dist_before,$*,lode)
	@$(MAKE) --no-print-directory -j$(DIST_JOBS) -f tools/dist/grammars.mk SRC=$(DIST_SRC) OUT=$(DIST)/$*/grammars CC="$(call dist_cc,$*)" all
	@rm -f $(DIST)/$*/release/lode $(DIST)/$*/release/lode-parser
	@$(call dist_make,$*,LDFLAGS="$(call dist_of,$*,link)" LODE_EXTRA="$(call dist_obj,$*,libraries $(call dist_of,$*,static))" \
	  PKG_LIBS="$(call dist_lib_files,$*)" $(DIST)/$*/release/lode)
	@$(call dist_of,$*,strip_debug) $(DIST)/$*/release/lode
	@$(call dist_make,$*,LDFLAGS="$(call dist_of,$*,link) $(call dist_of,$*,link_parser)" PARSER_EXTRA="$(call dist_obj,$*,$(call dist_of,$*,static)) \
	  $(DIST)/$*/release/grammar_table.o $$(ls $(DIST)/$*/grammars/*.o | tr '\n' ' ')" PKG_LIBS="$(call dist_lib_files,$*,,microhttpd)" \
	  $(DIST)/$*/release/lode-parser)
	@$(call dist_of,$*,strip_all) $(DIST)/$*/release/lode-parser
	@$(call dist_after,$*,lode)

$(OUT)/grammar_table.o: $(BUILD)/grammars/table.c
	$(call say,CC)$(CC) $(CFLAGS_ALL) -I. -c -o $@ $<

# The library for Python and other programs; it needs nothing but the C library, whose allocator it keeps
$(addprefix dist-shared-,$(DIST_PROGRAM) $(DIST_GLIBC)): dist-shared-%: dist-libs-%
	@$(call dist_before,$*,liblode)
	@$(call dist_make,$*,LDFLAGS="$(dist_strip)" LIB_EXTRA="$(call dist_obj,$*,$(sort dlfcn cpu_model $(call dist_of,$*,static))) $(DIST)/$*/release/libraries_shared.o" \
	  PKG_LIBS="$(call dist_lib_files,$*,,microhttpd mimalloc)" dist-shared-file)
	@$(call dist_after,$*,liblode)
.PHONY: dist-shared-file
dist-shared-file: $(OUT)/$(LIB_FILE)
$(OUT)/libraries_shared.o: tools/dist/static/libraries.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CFLAGS_ALL) -DDIST_LIBRARY -MMD -MP -c -o $@ $<
