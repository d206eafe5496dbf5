# grammars.mk - the grammars as objects and a table of them, for one target, to be linked into lode-parser.
#
#   make -f tools/dist/grammars.mk SRC=build/dist/src OUT=build/dist/TARGET/grammars CC="zig cc -target TARGET" all
SRC ?= build/dist/src
OUT ?= build/dist/grammars
NPM := $(SRC)/grammars/node_modules
LIST := deps/grammars/grammars.txt
FLAGS := -O1 -fPIC -w -fvisibility=hidden -ffile-prefix-map=$(CURDIR)=.

# NAME=FOLDER, as in the list
PAIRS := $(shell sed -n 's/^\([a-z][^ ]*\) \(.*\)/\1=\2/p' $(LIST))
.PHONY: all
all: $(OUT)/table.c

define grammar
$(1).obj := $(OUT)/$(1).parser.o $(if $(wildcard $(NPM)/$(2)/scanner.c),$(OUT)/$(1).scanner.o)
$(OUT)/$(1).%.o: $(NPM)/$(2)/%.c tools/dist/grammars.mk
	@mkdir -p $$(@D)
	@printf '  CC  %s\n' $$@
	@$(CC) $(FLAGS) -I$(NPM)/$(2) -c -o $$@ $$<
all: $$($(1).obj)
endef
$(foreach p,$(PAIRS),$(eval $(call grammar,$(word 1,$(subst =, ,$(p))),$(word 2,$(subst =, ,$(p))))))

$(OUT)/table.c: $(LIST) tools/dist/grammars.mk
	@mkdir -p $(@D)
	@{ echo '#include "tools/dist/static/dist_static.h"'; \
	  sed -n 's/^\([a-z][^ ]*\) .*/void tree_sitter_\1(void);/p' $(LIST); \
	  echo 'const dist_symbol dist_symbols[] = {'; \
	  sed -n 's/^\([a-z][^ ]*\) .*/  {"\1.so", "tree_sitter_\1", tree_sitter_\1},/p' $(LIST); \
	  echo '  {0}};'; } >$@
