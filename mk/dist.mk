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
  CFLAGS="-g0 -fno-sanitize=undefined -ffile-prefix-map=$(CURDIR)=. -DCURL_STATICLIB -DLODE_GRAMMARS_LINKED -funwind-tables $(if $(findstring gnu,$(1)),-include tools/dist/static/old_glibc.h,-Itools/dist/static -DLODE_EXECINFO)" \
  PKG_CFLAGS="-isystem $(DIST)/$(1)/libs/include" TS=$(DIST_SRC)/grammars/node_modules/tree-sitter/vendor/tree-sitter/lib \
  $(2)
dist_obj  = $(foreach o,$(2),$(DIST)/$(1)/release/tools/dist/static/$(o).o)

.PHONY: $(addprefix dist-libs-,$(DIST_LINUX)) $(addprefix dist-lode-,$(DIST_LINUX))
$(addprefix dist-libs-,$(DIST_LINUX)): dist-libs-%: dist-fetch
	@$(MAKE) --no-print-directory -j2 -f tools/dist/libs.mk SRC=$(DIST_SRC) OUT=$(DIST)/$*/libs CC="$(call dist_cc,$*)" AR="$(DIST_ZIG) ar" all

# lode, lode-parser
# lode keeps its symbol table, for the names in crash reports. musl gives threads the stack size that the program's header asks for.
DIST_STATIC   := -static -Wl,-z,stack-size=8388608
DIST_STRIPPED := -Wl,--strip-all
$(addprefix dist-lode-,$(DIST_LINUX)): dist-lode-%: dist-libs-%
	@$(MAKE) --no-print-directory -j2 -f tools/dist/grammars.mk SRC=$(DIST_SRC) OUT=$(DIST)/$*/grammars CC="$(call dist_cc,$*)" all
	@rm -f $(DIST)/$*/release/lode $(DIST)/$*/release/lode-parser # always linked: make does not see the libraries
	@$(call dist_make,$*,LDFLAGS="$(DIST_STATIC)" LODE_EXTRA="$(call dist_obj,$*,dlfcn libraries execinfo cpu_model)" \
	  PKG_LIBS="$(call dist_libs,$*,$(DIST_HTTP) microhttpd mimalloc) -lunwind" $(DIST)/$*/release/lode)
	@python3 tools/dist/drop_debug.py $(DIST)/$*/release/lode
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

# ---- Packages, in build/dist/out: tarballs, wheels and npm packages of the self-contained programs

DIST_OUT      := $(DIST)/out
DIST_MACHINES ?= x86_64 aarch64
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

.PHONY: dist dist-packages $(addprefix dist-machine-,x86_64 aarch64)
$(addprefix dist-machine-,x86_64 aarch64): dist-machine-%:
	@$(MAKE) --no-print-directory dist-lode-$*-linux-musl
	@$(MAKE) --no-print-directory dist-shared-$*-linux-musl
	@$(MAKE) --no-print-directory dist-shared-$*-linux-gnu.2.17
# One machine after the other: they share the folder of sources
dist:
	@for m in $(DIST_MACHINES); do $(MAKE) --no-print-directory dist-machine-$$m || exit 1; done
	@$(MAKE) --no-print-directory dist-packages
dist-packages:
	@rm -rf $(DIST_OUT)
	@for m in $(DIST_MACHINES); do tools/dist/stage.sh $$m-linux-musl $(DIST)/stage/$$m-linux-musl && tools/dist/tarball.sh $$m $(DIST_OUT) && \
	  python3 tools/dist/wheel.py $$m $(DIST_OUT) || exit 1; done
	@python3 tools/dist/npm.py $(DIST_OUT) $(DIST_MACHINES)
	@cd $(DIST_OUT) && sha256sum *.whl *.tgz *.tar.gz >SHA256SUMS

# Packages for this Debian, linked with its libraries
.PHONY: deb
deb: deps grammars
	@tools/deps.sh debhelper dpkg-dev lintian
	@tools/dist/deb.sh $(BUILD)/deb

# ---- Tests of what make dist has built: the scripts of the normal build, bare roots, the other machine under qemu

DIST_LODE  := $(DIST)/stage/$(shell uname -m)-linux-musl/bin/lode
DIST_RUNS   = $(foreach t,cli code mcp trust hostile agents index_guard examples,dist/$(t)="test/shell/$(t).sh $(DIST_LODE)")
DIST_RUNS  += dist/serve="env LODE_TEST_NO_TLS=1 test/shell/serve.sh $(DIST_LODE)" dist/python="test/shell/python.sh $(DIST_LODE)"
DIST_RUNS  += dist/packages="test/shell/dist.sh $(DIST_OUT) $(foreach s,bookworm trixie,$(DIST)/chroot/$(s))" dist/qemu="test/shell/dist_qemu.sh $(DIST)/stage"
.PHONY: test-dist
test-dist: deps-test
	@tools/deps.sh debootstrap busybox-static qemu-user-static binutils
	@for s in bookworm trixie; do tools/dist/chroot.sh $$s $(DIST)/chroot/$$s || exit 1; done
	@test/support/run.sh $(DIST_RUNS)

# Two builds in different folders give the same bytes
.PHONY: test-reproducible
test-reproducible:
	@tools/dist/twice.sh $(DIST)
