# Packages of the self-contained programs that mk/dist.mk builds, in build/dist/out: tarballs, wheels, npm and Debian packages; and the tests of them.

DIST_OUT  := $(DIST)/out
DIST_HOST := $(shell uname -m)-linux-musl
dist_glibc = $(patsubst %-linux-musl,%-linux-gnu.2.17,$(filter %-linux-musl,$(1)))

.PHONY: dist dist-packages dist-packages-all $(addprefix dist-target-,$(DIST_PROGRAM))
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
	@$(MAKE) --no-print-directory -j$(DIST_JOBS) dist-packages-all
	@for t in $(DIST_TARGETS); do tools/dist/budget.sh parts $(DIST)/stage/$$t $$(ls $(DIST)/$$t/release/liblode.so.$(VERSION) $(DIST)/$$t/release/liblode.$(VERSION).dylib 2>/dev/null) || exit 1; done
	@tools/dist/budget.sh packages $$(ls $(DIST_OUT)/*)
	@cd $(DIST_OUT) && sha256sum * >SHA256SUMS

# Most of the time goes to compressing, so that packages are made beside each other
dist_each    = $(addprefix dist-$(1)-,$(2))
DIST_STAGES  = $(call dist_each,stage,$(DIST_TARGETS))
DIST_WHEELS  = $(call dist_each,wheel,$(DIST_TARGETS) $(call dist_glibc,$(DIST_TARGETS)))
DIST_DEBS    = $(call dist_each,deb,$(filter %-linux-musl,$(DIST_TARGETS)))
DIST_ARCHIVE = $(call dist_each,tarball,$(DIST_TARGETS)) $(call dist_each,npm,$(DIST_TARGETS))
.PHONY: $(DIST_STAGES) $(DIST_WHEELS) $(DIST_DEBS) $(DIST_ARCHIVE) dist-npm dist-lgpl
$(DIST_WHEELS) $(DIST_DEBS) $(DIST_ARCHIVE): $(DIST_STAGES)
$(DIST_STAGES): dist-stage-%:
	@tools/dist/stage.sh $* $(DIST)/stage/$*
$(DIST_WHEELS): dist-wheel-%:
	@python3 bindings/python/wheel.py $* $(DIST_OUT)
$(DIST_DEBS): dist-deb-%:
	@tools/dist/static_deb.sh $* $(DIST_OUT)
$(call dist_each,tarball,$(DIST_TARGETS)): dist-tarball-%:
	@tools/dist/tarball.sh $* $(DIST_OUT)
$(call dist_each,npm,$(DIST_TARGETS)): dist-npm-%:
	@tools/dist/npm.sh $(DIST_OUT) $*
dist-npm:
	@tools/dist/npm.sh $(DIST_OUT)
dist-lgpl:
	@tools/dist/lgpl.sh $(DIST_OUT)
dist-packages-all: $(DIST_DEBS) $(DIST_WHEELS) $(DIST_ARCHIVE) dist-npm dist-lgpl

# Packages for this Debian, linked with its libraries
.PHONY: deb
deb: deps
	@tools/deps.sh debhelper dpkg-dev lintian
	@tools/dist/deb.sh $(BUILD)/deb

# ---- Tests of what make dist has built: the scripts of the normal build, bare roots, the other machine under qemu

# Debian 13, 12 and 11; Ubuntu 16.04, which has the oldest glibc (2.23) that the mirrors have
DIST_SUITES := trixie bookworm bullseye xenial
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
