# Self-contained programs for other machines, and packages of them: `make dist`. docs/PLATFORMS.md has the targets and what is tried.
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
dist_strip := -Wl,--strip-all
dist_strip_debug.linux-musl := llvm-strip --strip-debug
dist_strip_debug.macos      := :
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
	@$(call dist_make,$*,LDFLAGS="$(call dist_of,$*,link) $(dist_strip)" PARSER_EXTRA="$(call dist_obj,$*,$(call dist_of,$*,static)) \
	  $(DIST)/$*/release/grammar_table.o $$(ls $(DIST)/$*/grammars/*.o | tr '\n' ' ')" PKG_LIBS="$(call dist_lib_files,$*,,microhttpd)" \
	  $(DIST)/$*/release/lode-parser)
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

# ---- Packages, in build/dist/out: tarballs, wheels, npm and Debian packages of the self-contained programs

DIST_OUT := $(DIST)/out
dist_glibc = $(patsubst %-linux-musl,%-linux-gnu.2.17,$(filter %-linux-musl,$(1)))

.PHONY: dist dist-packages $(addprefix dist-target-,$(DIST_PROGRAM))
$(addprefix dist-target-,$(DIST_PROGRAM)): dist-target-%:
	@for t in lode-$* $(addprefix shared-,$* $(call dist_glibc,$*)); do $(MAKE) --no-print-directory dist-$$t || exit 1; done
# One target after the other: they share the folder of sources. That of this machine is always built, for it prints the man pages.
dist:
	@for t in $(sort $(DIST_HOST) $(DIST_TARGETS)); do $(MAKE) --no-print-directory dist-target-$$t || exit 1; done
	@$(MAKE) --no-print-directory dist-packages
dist-packages:
	@tools/dist/sources.sh check $(foreach t,$(DIST_TARGETS),$(call dist_sources,$(t),lode)) \
	  $(foreach t,$(DIST_TARGETS) $(call dist_glibc,$(DIST_TARGETS)),$(call dist_sources,$(t),liblode))
	@rm -rf $(DIST_OUT)
	@mkdir -p $(DIST_OUT)
	@for t in $(DIST_TARGETS); do tools/dist/stage.sh $$t $(DIST)/stage/$$t && tools/dist/tarball.sh $$t $(DIST_OUT) || exit 1; done
	@for t in $(DIST_TARGETS) $(call dist_glibc,$(DIST_TARGETS)); do python3 bindings/python/wheel.py $$t $(DIST_OUT) || exit 1; done
	@for t in $(filter %-linux-musl,$(DIST_TARGETS)); do tools/dist/static_deb.sh $$t $(DIST_OUT) || exit 1; done
	@tools/dist/npm.sh $(DIST_OUT) $(DIST_TARGETS)
	@tools/dist/lgpl.sh $(DIST_OUT)
	@for t in $(DIST_TARGETS); do tools/dist/budget.sh parts $(DIST)/stage/$$t $$(ls $(DIST)/$$t/release/liblode.so.$(VERSION) $(DIST)/$$t/release/liblode.$(VERSION).dylib 2>/dev/null) || exit 1; done
	@tools/dist/budget.sh packages $$(ls $(DIST_OUT)/*)
	@cd $(DIST_OUT) && sha256sum * >SHA256SUMS

# Packages for this Debian, linked with its libraries
.PHONY: deb
deb: deps
	@tools/deps.sh debhelper dpkg-dev lintian
	@tools/dist/deb.sh $(BUILD)/deb

# ---- Tests of what make dist has built: the scripts of the normal build, bare roots, the other machine under qemu

# Debian 13, 12 and 11, which has the oldest glibc (2.31) that the mirrors have
DIST_SUITES := trixie bookworm bullseye
DIST_HOST  := $(shell uname -m)-linux-musl
DIST_LODE  := $(DIST)/stage/$(DIST_HOST)/bin/lode
DIST_SO    := $(CURDIR)/$(DIST)/$(call dist_glibc,$(DIST_HOST))/release/liblode.so
DIST_RUNS   = $(foreach t,cli code mcp trust hostile agents index_guard,dist/$(t)="test/shell/$(t).sh $(DIST_LODE)")
DIST_RUNS  += dist/serve="env LODE_TEST_NO_TLS=1 test/shell/serve.sh $(DIST_LODE)" dist/python="env LODE_LIBRARY=$(DIST_SO) test/shell/python.sh $(DIST_LODE)"
DIST_RUNS  += dist/clients="test/shell/clients.sh $(DIST_LODE)"
DIST_RUNS  += dist/packages="test/shell/dist.sh $(DIST_OUT) $(foreach s,$(DIST_SUITES),$(DIST)/chroot/$(s))"
DIST_RUNS  += dist/qemu="test/shell/dist_qemu.sh $(DIST)/stage" $(foreach t,mcp trust hostile,dist/qemu_$(t)="test/shell/dist_qemu.sh $(DIST)/stage $(t)")
DIST_RUNS  += dist/examples="env LODE_LIBRARY=$(DIST_SO) test/shell/examples.sh $(DIST_LODE)"
DIST_RUNS  += dist/trace="test/shell/dist_trace.sh $(DIST_ZIG)"
.PHONY: test-dist
test-dist: deps-test
	@tools/deps.sh debootstrap busybox-static musl qemu-user-static binutils llvm
	@[ -x $(DIST_LODE) ] || $(MAKE) --no-print-directory dist
	@for s in $(DIST_SUITES); do tools/dist/chroot.sh $$s $(DIST)/chroot/$$s || exit 1; done
	@test/support/run.sh $(DIST_RUNS)

# Two builds in different folders give the same bytes
.PHONY: test-reproducible
test-reproducible:
	@[ -x $(DIST)/$(DIST_HOST)/release/lode ] || $(MAKE) --no-print-directory dist-lode-$(DIST_HOST)
	@tools/dist/twice.sh $(DIST)
