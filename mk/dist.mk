# Self-contained programs for other machines, and packages of them: `make dist`. docs/PLATFORMS.md has the targets and what is tried.
#
# One compiler (zig) builds for all targets; it and the libraries that are linked in come from deps/dist/sources.txt. The programs are
# linked statically with musl; the shared library is made for old and new glibc, and for musl.

DIST       := $(BUILD)/dist
DIST_SRC   := $(DIST)/src
DIST_ZIG   := $(CURDIR)/$(DIST_SRC)/zig/ziglang/zig
DIST_LINUX := x86_64-linux-musl aarch64-linux-musl
DIST_GLIBC := x86_64-linux-gnu.2.17 aarch64-linux-gnu.2.17

.PHONY: dist-fetch
dist-fetch:
	@tools/dist/fetch.sh $(DIST_SRC)

# $(call dist_make,TARGET,WHAT): builds files of Lode for a target. No debug information and no paths: the same bytes in every folder.
dist_cc   = $(DIST_ZIG) cc -target $(1)
dist_libs = $(foreach l,$(2),$(DIST)/$(1)/libs/lib$(l).a)
DIST_HTTP := sqlite pcre2 utf8proc curl mbedtls
dist_make = $(MAKE) --no-print-directory -j2 BUILD=$(DIST)/$(1) SAN= CC="$(call dist_cc,$(1))" AR="$(DIST_ZIG) ar" WERROR= PREFIX=/usr/local \
  HARDEN="-fstack-protector-strong -fPIC" \
  CFLAGS="-g0 -fno-sanitize=undefined -ffile-prefix-map=$(CURDIR)=. -DCURL_STATICLIB -DLODE_GRAMMARS_LINKED -funwind-tables $(if $(findstring gnu,$(1)),-include tools/dist/static/old_glibc.h,-Itools/dist/static)" \
  PKG_CFLAGS="-isystem $(DIST)/$(1)/libs/include" TS=$(DIST_SRC)/grammars/node_modules/tree-sitter/vendor/tree-sitter/lib \
  $(2)
dist_obj  = $(foreach o,$(2),$(DIST)/$(1)/release/tools/dist/static/$(o).o)

.PHONY: $(addprefix dist-libs-,$(DIST_LINUX)) $(addprefix dist-lode-,$(DIST_LINUX))
$(addprefix dist-libs-,$(DIST_LINUX)): dist-libs-%: dist-fetch
	@$(MAKE) --no-print-directory -j2 -f tools/dist/libs.mk SRC=$(DIST_SRC) OUT=$(DIST)/$*/libs CC="$(call dist_cc,$*)" AR="$(DIST_ZIG) ar" all

# lode, lode-parser
# lode keeps its symbol table, for the names in crash reports. musl gives threads the stack size that the program's header asks for.
DIST_STATIC   := -static -Wl,-z,stack-size=8388608
DIST_SYMBOLS  := -Wl,--strip-debug
DIST_STRIPPED := -Wl,--strip-all
$(addprefix dist-lode-,$(DIST_LINUX)): dist-lode-%: dist-libs-%
	@$(MAKE) --no-print-directory -j2 -f tools/dist/grammars.mk SRC=$(DIST_SRC) OUT=$(DIST)/$*/grammars CC="$(call dist_cc,$*)" all
	@$(call dist_make,$*,LDFLAGS="$(DIST_STATIC) $(DIST_SYMBOLS)" LODE_EXTRA="$(call dist_obj,$*,dlfcn libraries execinfo cpu_model)" \
	  PKG_LIBS="$(call dist_libs,$*,$(DIST_HTTP) microhttpd mimalloc) -lunwind" $(DIST)/$*/release/lode)
	@$(call dist_make,$*,LDFLAGS="$(DIST_STATIC) $(DIST_STRIPPED)" PARSER_EXTRA="$(call dist_obj,$*,dlfcn execinfo cpu_model) $(DIST)/$*/release/grammar_table.o \
	  $$(ls $(DIST)/$*/grammars/*.o | tr '\n' ' ')" PKG_LIBS="$(call dist_libs,$*,$(DIST_HTTP) mimalloc) -lunwind" $(DIST)/$*/release/lode-parser)

$(OUT)/grammar_table.o: $(BUILD)/grammars/table.c
	$(call say,CC)$(CC) $(CFLAGS_ALL) -I. -c -o $@ $<

# liblode.so for Python and other programs: for glibc from 2.17 on, and for musl; it needs nothing but the C library
DIST_SHARED := $(DIST_LINUX) $(DIST_GLIBC)
.PHONY: $(addprefix dist-shared-,$(DIST_SHARED))
$(addprefix dist-shared-,$(DIST_GLIBC)): dist-shared-%: dist-fetch
	@$(MAKE) --no-print-directory -j2 -f tools/dist/libs.mk SRC=$(DIST_SRC) OUT=$(DIST)/$*/libs LIBS="$(DIST_HTTP)" CC="$(call dist_cc,$*)" AR="$(DIST_ZIG) ar" all
	@$(dist_shared)
$(addprefix dist-shared-,$(DIST_LINUX)): dist-shared-%: dist-libs-%
	@$(dist_shared)
dist_shared = $(call dist_make,$*,LDFLAGS="$(DIST_STRIPPED)" LIB_EXTRA="$(call dist_obj,$*,dlfcn cpu_model) $(DIST)/$*/release/libraries_shared.o" \
  PKG_LIBS="$(call dist_libs,$*,$(DIST_HTTP))" $(DIST)/$*/release/liblode.so.$(VERSION))
$(OUT)/libraries_shared.o: tools/dist/static/libraries.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CFLAGS_ALL) -DDIST_LIBRARY -MMD -MP -c -o $@ $<
