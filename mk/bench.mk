# Figures beside the peers (each command writes its page in bench/), and the training of the model for code.

.PHONY: bench-cluster
bench-cluster: test-cluster
	@bench/cluster.sh

# What walking, parsing and chunking cost: FOLDER=/usr/include
.PHONY: bench-chunk
$(OUT)/bench_chunk: $(OUT)/bench/code/bench_chunk.o $(INSIDE)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)
bench-chunk: deps grammars
	@$(MAKE) --no-print-directory -j2 all $(OUT)/bench_chunk
	@$(OUT)/bench_chunk $(or $(FOLDER),/usr/include)

# What symbols cost an index: FOLDERS='a b', copied first
SYMBOLS_WITHOUT := $(OUT)/bench/symbols/lode-parser-without
$(OUT)/bench/symbols/without.o: CFLAGS_ALL += -isystem $(TS)/include
$(SYMBOLS_WITHOUT): $(PARSER_OBJ) $(OUT)/bench/symbols/without.o $(OUT)/tree-sitter.o $(PARSER_EXTRA) $(INSIDE)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -Wl,--wrap=parser_make_symbols -pie -o $@ $^ $(LIBS)
.PHONY: bench-symbols-cost
bench-symbols-cost: deps grammars
	@$(MAKE) --no-print-directory -j2 all $(SYMBOLS_WITHOUT)
	@bench/symbols/cost.sh $(OUT) $(or $(FOLDERS),src)

bench: deps
	@$(MAKE) --no-print-directory -j2 all
	@bench/run.sh

# The static program of make dist beside the dynamic one, written to docs/PLATFORMS.md
.PHONY: bench-dist
bench-dist: deps grammars
	@$(MAKE) --no-print-directory -j2 all
	@[ -d $(DIST_OUT) ] || $(MAKE) --no-print-directory dist
	@bench/dist/run.sh $(DIST) $(OUT)

# What a change costs: REV=revision to compare with
.PHONY: bench-against
bench-against: deps
	@bench/against.sh $(or $(REV),HEAD~1)

# How well code is found: bench/quality/README.md says what it needs
QUALITY_OBJ := $(call obj,bench/quality/tasks.c bench/quality/texts.c bench/quality/rank.c bench/quality/rank_facts.c)
QUALITY_PROGRAMS := $(addprefix $(OUT)/bench/quality/,score quality lines ask facts budget)
$(QUALITY_PROGRAMS): $(OUT)/bench/quality/%: $(OUT)/bench/quality/%.o $(QUALITY_OBJ) $(INSIDE)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)
.PHONY: bench-quality
bench-quality: deps
	@$(MAKE) --no-print-directory -j2 all $(QUALITY_PROGRAMS)
	@bench/quality/run.sh $(OUT)

# Weights of the ranking, on indexed trees: bench/code/tune.c says how
$(OUT)/bench/code/tune: $(OUT)/bench/code/tune.o $(INSIDE)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)
.PHONY: bench-code
bench-code: deps
	@$(MAKE) --no-print-directory -j2 all
	@LODE=$(OUT)/lode bench/code/run.sh

# Questions of agents: bench/agents/README.md says what it needs
.PHONY: bench-agents
bench-agents: deps
	@$(MAKE) --no-print-directory -j2 all
	@bench/agents/run.sh $(OUT)/lode

# The static model for code, rebuilt: packages, pairs, words, training (tools/train/README.md)
TRAIN_TOOLS := $(addprefix $(OUT)/tools/train/,mine vocab pack train start export)
TRAIN_OBJ   := $(call obj,tools/train/tar.c tools/train/clean.c tools/train/pairs.c tools/train/lexicon.c tools/train/table.c)
$(OUT)/tools/train/%.o: CFLAGS_ALL += -O3 -ffast-math -march=native
$(TRAIN_TOOLS): $(OUT)/tools/train/%: $(OUT)/tools/train/%.o $(TRAIN_OBJ) $(INSIDE)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS) -lopenblas
.PHONY: train-tools
train-tools: $(TRAIN_TOOLS)

# Where the bytes of the store FOLDER are, by table and by section of the segments
$(OUT)/bench_space: $(OUT)/bench/bench_space.o $(INSIDE)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)
# A vector index that is larger than its memory: ROWS vectors of DIM dimensions with a budget of BUDGET MiB
$(OUT)/bench_large: $(OUT)/bench/bench_large.o $(OUT)/bench/common.o $(INSIDE)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)
.PHONY: bench-space bench-large
bench-space: deps
	@$(MAKE) --no-print-directory -j2 $(OUT)/bench_space
	@$(OUT)/bench_space $(FOLDER)
bench-large: deps
	@$(MAKE) --no-print-directory -j2 $(OUT)/bench_large
	@work=$$(mktemp -d "$${TMPDIR:-/tmp}/lode-large-XXXXXX") && trap 'rm -rf "$$work"' EXIT && \
	  $(OUT)/bench_large large "$$work/store" $(or $(ROWS),10000000) $(or $(DIM),128) $(or $(BUDGET),512) 2000

# How long a rescue of 135,464 x 384 takes, and what the Python binding costs
.PHONY: bench-rescue bench-python
bench-rescue: deps
	@$(MAKE) --no-print-directory -j2 all
	@bench/rescue/run.sh $(OUT)/lode
$(OUT)/bench_binding: $(OUT)/bench/bench_binding.o $(OUT)/bench/common.o $(INSIDE)
	$(call say,LD)$(CC) $(LDFLAGS_ALL) -pie -o $@ $^ $(LIBS)
bench-python: deps
	@$(MAKE) --no-print-directory -j2 all $(OUT)/bench_binding
	@bench/python/run.sh

bench-serve: deps
	@$(MAKE) --no-print-directory -j2 all
	@bench/serve/run.sh

# MiniLM here beside onnxruntime
.PHONY: bench-embed
bench-embed: deps
	@$(MAKE) --no-print-directory -j2 all
	@bench/embed/run.sh

# ---- The Python package, with the library inside

.PHONY: wheel
wheel: all
	@mkdir -p $(BUILD)/wheels
	python3 -m pip wheel --quiet --no-deps -w $(BUILD)/wheels bindings/python
	@rm -rf bindings/python/build bindings/python/*.egg-info
	@ls $(BUILD)/wheels
.PHONY: bench-vectors
bench-vectors: deps
	@tools/deps.sh libhnswlib-dev g++ || true
	@bench/vectors/run.sh


# The index alone beside the fastest libraries: SETS="fashion words patches", KS=10,100, OLD=bench_index of another version
.PHONY: bench-frontier
bench-frontier: deps
	@tools/deps.sh libhnswlib-dev g++ || true
	@bench/vectors/frontier.sh
