# Lode. `make quickstart` to try it, `make test` for all tests, `make help` for the rest.

VERSION  := $(shell sed -n 's/^\#define LODE_VERSION_TEXT "\(.*\)"/\1/p' include/lode.h)
PREFIX   ?= /usr/local
BUILD    ?= build
CC       ?= cc
# SAN: empty, asan or tsan; each kind of build has a folder of its own
SAN      ?=
OUT      := $(BUILD)/$(if $(SAN),$(SAN),release)

PKGS     := sqlite3 libpcre2-8 libutf8proc
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS))
PKG_LIBS   = $(shell pkg-config --libs $(PKGS))

OPT.      := -O2 -D_FORTIFY_SOURCE=2
OPT.asan  := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -DLODE_CHECKED
OPT.tsan  := -O1 -fsanitize=thread -fno-omit-frame-pointer -DLODE_CHECKED
WARN      := -Wall -Wextra -Werror -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
HARDEN    := -fstack-protector-strong -fstack-clash-protection -fPIC
LDHARDEN  := -Wl,-z,relro,-z,now -Wl,-z,noexecstack
# Distances must be the same on every CPU: no fused multiply-add behind our back
CFLAGS_ALL = -std=c11 -D_GNU_SOURCE -Iinclude -Isrc -g -fvisibility=hidden -ffp-contract=off $(OPT.$(SAN)) $(WARN) $(HARDEN) \
             $(PKG_CFLAGS) $(CFLAGS)
LDFLAGS_ALL = $(OPT.$(SAN)) $(LDHARDEN) $(LDFLAGS)
LIBS       = $(PKG_LIBS) -lpthread -lm

LIB_SRC  := $(sort $(wildcard src/base/*.c src/index/*.c src/store/*.c src/query/*.c src/core/*.c))
FACE_SRC := $(sort $(wildcard src/face/*.c))
TEST_SRC := $(sort $(wildcard test/test_*.c))
HELP_SRC := $(filter-out $(TEST_SRC),$(sort $(wildcard test/*.c)))
obj       = $(patsubst %.c,$(OUT)/%.o,$(1))
LIB_OBJ  := $(call obj,$(LIB_SRC))
FACE_OBJ := $(call obj,$(FACE_SRC))
HELP_OBJ := $(call obj,$(HELP_SRC))
TESTS    := $(patsubst test/%.c,$(OUT)/test/%,$(TEST_SRC))

.PHONY: all
all: $(OUT)/liblode.a $(OUT)/liblode.so.$(VERSION) $(OUT)/lode

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(OUT)/liblode.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(OUT)/liblode.so.$(VERSION): $(LIB_OBJ)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,liblode.so.0 -o $@ $^ $(LIBS)
	@ln -sf liblode.so.$(VERSION) $(OUT)/liblode.so.0
	@ln -sf liblode.so.0 $(OUT)/liblode.so

$(OUT)/lode: $(FACE_OBJ) $(OUT)/liblode.a
	$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)

# Tests link the objects, not the library, to reach inside
$(OUT)/test/%: $(OUT)/test/%.o $(HELP_OBJ) $(OUT)/liblode.a
	$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS) $(TEST_LIBS)

.PHONY: tests
tests: $(TESTS)
.SECONDARY:

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

.PHONY: clean
clean:
	rm -rf $(BUILD)
