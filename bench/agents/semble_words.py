# semble_words.py FOLDER - semble's search as its MCP server answers it, by words alone (alpha 0): its model is on no package registry.
# Reads one JSON object a line, {"query": ..., "top_k": ...}, and answers each with one line: the text that the tool search returns.
# A model of one word stands in for its own, because the index cannot be made without one; it has no weight in the order.
import json
import sys

import numpy as np
from model2vec import StaticModel
from semble.index import SembleIndex, dense
from semble.utils import format_results
from tokenizers import Tokenizer, models, pre_tokenizers

words = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
nothing = StaticModel(np.ones((2, 4), dtype=np.float32), words)
dense._load_cached = lambda path: nothing
index = SembleIndex.from_path(sys.argv[1], model_path="none")
for line in sys.stdin:
    ask = json.loads(line)
    found = index.search(ask["query"], top_k=ask["top_k"], max_snippet_lines=10, alpha=0.0)
    text = json.dumps(format_results(ask["query"], found, 10)) if found else json.dumps({"error": "No results found."})
    print(json.dumps(text), flush=True)
