# libs.mk - the libraries that a self-contained lode is linked with, for one target, from the sources that fetch.sh has unpacked.
#
#   make -f tools/dist/libs.mk SRC=build/dist/src OUT=build/dist/TARGET/libs CC="zig cc -target TARGET" AR="zig ar" all
#
# Everything is hidden, so that a shared library made of it exports what lode.h declares and nothing else.
SRC ?= build/dist/src
OUT ?= build/dist/libs
CONFIG := tools/dist/config
FLAGS  := -O2 -fPIC -fvisibility=hidden -ffile-prefix-map=$(CURDIR)=. -w -D_GNU_SOURCE

LIBS ?= sqlite pcre2 utf8proc mbedtls curl microhttpd mimalloc
.PHONY: all
all: $(LIBS:%=$(OUT)/lib%.a) $(OUT)/include/complete

sqlite.src   := $(SRC)/sqlite/sqlite3/sqlite3.c
sqlite.flags := -DSQLITE_THREADSAFE=1 -DSQLITE_ENABLE_FTS5 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_MAX_VARIABLE_NUMBER=250000

# Not those that others include, that are tests, or that make tables; three files are copied from those that the source brings for all systems
PCRE2       := $(SRC)/pcre2/src
PCRE2_NOT   := $(foreach f,jit_match jit_misc jit_test ucptables dftables fuzzsupport printint,$(PCRE2)/pcre2_$(f).c)
PCRE2_MADE  := $(addprefix $(PCRE2)/,config.h pcre2.h pcre2_chartables.c)
pcre2.src   := $(sort $(filter-out $(PCRE2_NOT),$(wildcard $(PCRE2)/pcre2_*.c)) $(PCRE2)/pcre2_chartables.c)
pcre2.flags := -I$(PCRE2) -I$(SRC)/pcre2/deps -DPCRE2_CODE_UNIT_WIDTH=8 \
  -DHAVE_CONFIG_H -DHAVE_STDLIB_H -DHAVE_MEMMOVE -DPCRE2_STATIC -DSTDC_HEADERS -DSUPPORT_PCRE2_8 -DSUPPORT_UNICODE -DSUPPORT_JIT

utf8proc.src   := $(SRC)/utf8proc/utf8proc/utf8proc.c
utf8proc.flags := -DUTF8PROC_STATIC

mbedtls.src   := $(wildcard $(SRC)/mbedtls/library/*.c)
MBEDTLS       := -I$(SRC)/mbedtls/include -DMBEDTLS_USER_CONFIG_FILE='<mbedtls_user.h>' -I$(CONFIG)
mbedtls.flags := $(MBEDTLS) -I$(SRC)/mbedtls/library

CURL       := $(SRC)/curl/curl
curl.src   := $(wildcard $(CURL)/lib/*.c $(CURL)/lib/curlx/*.c $(CURL)/lib/vauth/*.c $(CURL)/lib/vdns/*.c $(CURL)/lib/vquic/*.c \
  $(CURL)/lib/vssh/*.c $(CURL)/lib/vtls/*.c)
curl.flags := $(MBEDTLS) -I$(CURL)/include -I$(CURL)/lib -DBUILDING_LIBCURL -DCURL_STATICLIB -DCURL_HIDDEN_SYMBOLS -DHAVE_CONFIG_H

MHD              := $(SRC)/libmicrohttpd/src
microhttpd.src   := $(addprefix $(MHD)/microhttpd/,connection.c reason_phrase.c daemon.c internal.c memorypool.c mhd_mono_clock.c sysfdsetsize.c \
  mhd_str.c mhd_send.c mhd_sockets.c mhd_itc.c mhd_compat.c mhd_panic.c response.c mhd_threads.c)
microhttpd.flags := -I$(CONFIG) -I$(MHD)/include -I$(MHD)/microhttpd

# mimalloc is one file that includes the others; it would tell when it was compiled
mimalloc.src   := $(SRC)/mimalloc/c_src/mimalloc/v2/src/static.c
mimalloc.flags := -I$(SRC)/mimalloc/c_src/mimalloc/v2/include -DMI_MALLOC_OVERRIDE=1 -DMI_STATIC_LIB -DMI_BUILD_RELEASE -DNDEBUG \
  -ftls-model=local-exec -fno-builtin-malloc -Wno-builtin-macro-redefined -D__DATE__='""' -D__TIME__='""'

# A source that fetch.sh has replaced may have old times; the sum that lies beside it has the time of fetching
sums            = $(patsubst %,$(SRC)/%.sum,$(or $($(1).sums),$(1)))
curl.sums       := curl mbedtls
microhttpd.sums := libmicrohttpd
define library
$(1).obj := $$(patsubst $(SRC)/%.c,$(OUT)/obj/%.o,$$($(1).src))
$$($(1).obj): $(OUT)/obj/%.o: $(SRC)/%.c tools/dist/libs.mk $(wildcard $(CONFIG)/*.h) $(call sums,$(1))
	@mkdir -p $$(@D)
	@$(CC) $(FLAGS) $$($(1).flags) -c -o $$@ $$<
$(OUT)/lib$(1).a: $$($(1).obj)
	@rm -f $$@
	@printf '  AR  %s\n' $$@
	@$(AR) rcsD $$@ $$^
endef
$(foreach l,$(LIBS),$(eval $(call library,$(l))))
$(pcre2.obj): $(PCRE2_MADE)
$(PCRE2)/%.h: $(PCRE2)/%.h.generic
	@cp $< $@
$(PCRE2)/%.c: $(PCRE2)/%.c.dist
	@cp $< $@

# The headers that Lode includes
$(OUT)/include/complete: tools/dist/libs.mk $(PCRE2_MADE) $(foreach l,$(LIBS),$(call sums,$(l)))
	@rm -rf $(@D) && mkdir -p $(@D)
	@cp $(SRC)/sqlite/sqlite3/sqlite3.h $(PCRE2)/pcre2.h $(SRC)/utf8proc/utf8proc/utf8proc.h $(MHD)/include/microhttpd.h $(@D)/
	@cp -r $(CURL)/include/curl $(@D)/curl
	@: >$@
