# report.awk - the figures of run.sh as a page: awk -f report.awk figures.txt

/^text\./ { key = $1; sub(/^[^ ]+ /, ""); text[key] = $0; next }
/^skipped\./ { key = $1; sub(/^skipped\.[^ ]+ /, ""); skipped[++n_skipped] = substr(key, 9) ": " $0; next }
/\.failed / { key = $1; sub(/^[^ ]+ /, ""); skipped[++n_skipped] = key ": " $0; next }
{ value[$1] = $2 }

function has(key) { return key in value }
function got(key) { return has(key) ? value[key] + 0 : "" }
function thousands(n,    s, out) {
  s = sprintf("%.0f", n)
  while (length(s) > 3) { out = "," substr(s, length(s) - 2) out; s = substr(s, 1, length(s) - 3) }
  return s out
}
function show(n) { return n == "" ? "-" : n >= 100 ? thousands(n) : n >= 10 ? sprintf("%.1f", n) : sprintf("%.2f", n) }
function row(what, lode, peer, times, goal, met) { printf "| %s | %s | %s | %s | %s | %s |\n", what, lode, peer, times, goal, met }
function verdict(known, ok) { return !known ? "-" : ok ? "yes" : "**no**" }
function head(title, peer) {
  printf "\n## %s\n\n| figure | Lode | %s | ratio | goal | met |\n|---|---|---|---|---|---|\n", title, peer
}
# Speeds: more is better. bound "": no goal
function faster(what, lode, peer, bound,    times) {
  if (lode == "" || peer == "" || peer == 0) { row(what, show(lode), show(peer), "-", bound == "" ? "" : bound " x", "-"); return }
  times = lode / peer
  row(what, show(lode), show(peer), sprintf("%.2f", times), bound == "" ? "" : bound " x", bound == "" ? "" : verdict(1, times >= bound))
}
function at_least(what, n, bound) { row(what, n == "" ? "-" : n, "", "", "at least " bound, verdict(n != "", n >= bound)) }
function at_most(what, n, bound, unit) { row(what, show(n) " " unit, "", "", "under " bound " " unit, verdict(n != "", n < bound)) }

function index_alone(set, title, wanted,    p, percents, n, i, base) {
  p = "index." set "."
  if (!has(p "lode_at_95") && !has(p "lode_default")) return
  head(title, "peer")
  faster("queries/s at recall 0.95, hnswlib", got(p "lode_at_95"), got(p "hnswlib_at_95"), wanted)
  faster("queries/s at recall 0.99, hnswlib", got(p "lode_at_99"), got(p "hnswlib_at_99"), wanted)
  if (has(p "faiss_at_95")) faster("queries/s at recall 0.95, faiss HNSW", got(p "lode_at_95"), got(p "faiss_at_95"), "")
  if (has(p "faiss_at_99")) faster("queries/s at recall 0.99, faiss HNSW", got(p "lode_at_99"), got(p "faiss_at_99"), "")
  if (has(p "usearch_at_95")) faster("queries/s at recall 0.95, usearch", got(p "lode_at_95"), got(p "usearch_at_95"), "")
  if (has(p "usearch_at_99")) faster("queries/s at recall 0.99, usearch", got(p "lode_at_99"), got(p "usearch_at_99"), "")
  if (has(p "hnswlib_build_s"))
    row("construction, s, hnswlib", show(got(p "lode_build_s")), show(got(p "hnswlib_build_s")), sprintf("%.2f", got(p "ratio_build")), "2 x faster", verdict(1, got(p "ratio_build") >= 2))
  if (has(p "faiss_build_s")) row("construction, s, faiss HNSW", show(got(p "lode_build_s")), show(got(p "faiss_build_s")), sprintf("%.2f", got(p "faiss_build_s") / got(p "lode_build_s")), "", "")
  if (has(p "usearch_build_s")) row("construction, s, usearch", show(got(p "lode_build_s")), show(got(p "usearch_build_s")), sprintf("%.2f", got(p "usearch_build_s") / got(p "lode_build_s")), "", "")
  if (has(p "percent_bytes"))
    row("memory, bytes a vector, hnswlib", show(got(p "lode_bytes")), show(got(p "hnswlib_bytes")), got(p "percent_bytes") " %", "at most 45 %", verdict(1, got(p "percent_bytes") <= 45))
  at_least("recall by default", got(p "lode_default_recall"), 0.97)
  row("queries/s by default", show(got(p "lode_default")), "", "", "", "")
  if (has(p "lode_distances")) row("distances a query by default", show(got(p "lode_distances")), "", "", "", "")
  n = split("1 10 50", percents, " ")
  for (i = 1; i <= n; i++) {
    if (!has(p "lode_filter_" percents[i])) continue
    base = got(p "lode_default")
    faster("filter of " percents[i] " %, used again (recall " got(p "lode_filter_" percents[i] "_recall") "), against none", got(p "lode_filter_" percents[i]), base, percents[i] <= 10 ? 1 : "")
    faster("the same, used once (recall " got(p "lode_once_" percents[i] "_recall") ")", got(p "lode_once_" percents[i]), base, percents[i] <= 10 ? 1 : "")
  }
}

# The fastest setting of a peer that finds 0.95 of the nearest; else the one that finds most.
function best_of(peer,    key, speed, r, name, best, best_recall, chosen) {
  chosen = ""; best = 0; best_recall = 0
  for (key in value) {
    if (index(key, "db.fashion." peer "_") != 1 || key !~ /_recall$/) continue
    name = substr(key, 1, length(key) - 7)
    r = value[key] + 0; speed = value[name "_qps"] + 0
    if ((r >= 0.95 && (best_recall < 0.95 || speed > best)) || (r < 0.95 && r > best_recall)) { best = speed; best_recall = r; chosen = name }
  }
  found_recall = best_recall
  return chosen
}
function databases(    mine, name) {
  if (!has("db.fashion.lode_qps")) return
  head("Through the API, with documents and metadata: " text["text.db_rows"] " images, beside whole databases", "peer")
  mine = got("db.fashion.lode_qps")
  name = best_of("chroma")
  if (name != "") faster("queries/s (recall " got("db.fashion.lode_recall") "), Chroma in process (recall " found_recall ")", mine, got(name "_qps"), 10)
  name = best_of("lance")
  if (name != "") faster("queries/s, LanceDB (recall " found_recall ")", mine, got(name "_qps"), 10)
  if (has("db2.fashion.lode_qps")) row("the same once more after them, queries/s", show(got("db2.fashion.lode_qps")), "", "", "", "")
  if (has("db.fashion.chroma_add_and_index_s")) faster("records/s added and indexed, Chroma", text["text.db_rows"] / got("db.fashion.lode_add_and_index_s"), text["text.db_rows"] / got("db.fashion.chroma_add_and_index_s"), "")
  if (has("db.fashion.lance_add_and_index_s")) faster("records/s added and indexed, LanceDB", text["text.db_rows"] / got("db.fashion.lode_add_and_index_s"), text["text.db_rows"] / got("db.fashion.lance_add_and_index_s"), "")
  if (has("db.fashion.chroma_filter_10_qps")) faster("queries/s, filter of 10 %, Chroma", got("db.fashion.lode_filter_10_qps"), got("db.fashion.chroma_filter_10_qps"), "")
  if (has("db.fashion.lance_filter_10_qps")) faster("queries/s, filter of 10 %, LanceDB", got("db.fashion.lode_filter_10_qps"), got("db.fashion.lance_filter_10_qps"), "")
}

function middle(what,    p, a, b, c) {
  p = "million." set
  a = got(p ".cold1." what); b = got(p ".cold2." what); c = got(p ".cold3." what)
  if (a == "" || b == "" || c == "") return a
  return a > b ? (b > c ? b : (a > c ? c : a)) : (a > c ? a : (b > c ? c : b))
}
function million(    p, percents, n, i, q, f) {
  p = "million." set "."
  if (!has(p "lode_qps")) return
  head("Through the API: " text["text.million_rows"] " records (" set ")", "")
  at_most("open and first query in a new process (middle of three)", middle("lode_cold_query_ms"), 30, "ms")
  at_most("open and count in a new process", middle("lode_cold_count_ms"), 5, "ms")
  at_least("recall by default", got(p "lode_recall"), 0.97)
  row("queries/s by default, with documents and metadata", show(got(p "lode_qps")), "", "", "", "")
  row("recall with target_recall 0.95; queries/s", got(p "lode_095_recall") "; " show(got(p "lode_095_qps")), "", "", "", "")
  row("recall with target_recall 0.99; queries/s", got(p "lode_099_recall") "; " show(got(p "lode_099_qps")), "", "", "", "")
  faster("queries/s, two threads against one", got(p "lode_2_threads_qps"), got(p "lode_one_thread_qps"), 1.8)
  n = split("1 10 50 99", percents, " ")
  for (i = 1; i <= n; i++) {
    f = p "lode_filter_" percents[i]
    if (!has(f "_qps")) continue
    faster("filter of " percents[i] " % (recall " got(f "_recall") "), against none", got(f "_qps"), got(p "lode_qps"), percents[i] <= 10 ? 1 : "")
    faster("the same, against the exact scan of what matches", got(f "_qps"), got(f "_exact_qps"), 1)
    row("the same, first use, ms", show(got(f "_first_ms")), "", "", "", "")
  }
  row("records/s added and indexed", show(text["text.million_rows"] / got(p "lode_add_and_index_s")), "", "", "", "")
}

END {
  set = text["text.million_set"]
  printf "# Vector search, beside others\n\n%s\n", text["text.machine"]
  printf "One thread asks, %s queries that are not in the data, 10 nearest; recall counts ties fairly. Runs of Lode and hnswlib are\n", text["text.queries"]
  printf "interleaved; construction uses all processors. Speeds at a recall are interpolated over each library's own knob.\n"
  if (text["text.quick"] == "1") printf "\n**A quick run: these figures prove nothing.**\n"
  index_alone("fashion", "The index alone: images, 784 dimensions, l2", 2)
  index_alone("words", "The index alone: word vectors, 100 dimensions, cosine", 1.5)
  index_alone("patches", "The index alone: a million patches, 128 dimensions, l2", 2)
  databases()
  million()
  if (n_skipped) printf "\n## Left out\n\n"
  for (i = 1; i <= n_skipped; i++) printf "- %s\n", skipped[i]
}
