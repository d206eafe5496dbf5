# report.awk - the figures of run.sh as a page: awk -f report.awk figures.txt > RESULTS.md

/^text\./ { key = $1; sub(/^[^ ]+ /, ""); text[key] = $0; next }
/^skipped / { skipped[++n_skipped] = substr($0, 9); next }
/^failed / { failed[++n_failed] = $2; next }
{ value[$1] = $2 }

function has(key) { return key in value }
# Median over the rounds: NAME.1.WHAT, NAME.2.WHAT, ...
function rounds_of(name, what, list,    r, n, i, t) {
  n = 0
  for (r = 1; has(name "." r "." what); r++) {
    t = value[name "." r "." what] + 0
    for (i = n++; i > 0 && list[i] > t; i--) list[i + 1] = list[i]
    list[i + 1] = t
  }
  return n
}
function median(name, what,    list, n) {
  n = rounds_of(name, what, list)
  return n ? (list[int((n + 1) / 2)] + list[int(n / 2) + 1]) / 2 : ""
}
function least(name, what,    list, n) {
  n = rounds_of(name, what, list)
  return n ? list[1] : ""
}
function got(key) { return has(key) ? value[key] + 0 : "" }
function mb(mib) { return mib == "" ? "" : mib * 1.048576 }
function thousands(n,    s, out) {
  s = sprintf("%.0f", n)
  while (length(s) > 3) { out = "," substr(s, length(s) - 2) out; s = substr(s, 1, length(s) - 3) }
  return s out
}
function short(n) { return n >= 1000 || n == int(n) ? thousands(n) : n >= 100 ? sprintf("%.0f", n) : n >= 10 ? sprintf("%.1f", n) : sprintf("%.2f", n) }
function show(n, unit) { return n == "" ? "not measured" : short(n) (unit == "" ? "" : " " unit) }
function ratio(a, b) { return a == "" || b == "" || b == 0 ? "" : sprintf(a / b < 0.1 ? "%.2g" : "%.2f", a / b) }
function verdict(known, ok) { return !known ? "not measured" : ok ? "yes" : "**no**" }
function row(what, lode, goal, peer, times, met) { printf "| %s | %s | %s | %s | %s | %s |\n", what, lode, goal, peer, times, met }
# A figure that must stay below (or at) a bound
function below(what, n, unit, bound, goal, peer, peer_text) {
  row(what, show(n, unit), goal, peer == "" ? "" : show(peer, unit) peer_text, ratio(n, peer), verdict(n != "", n <= bound))
}
function every(name, what,    r, out) {
  for (r = 1; has(name "." r "." what); r++) out = out (r > 1 ? ", " : "") short(value[name "." r "." what])
  return out == "" ? "none" : out
}

END {
  lode = median("ingest.lode", "rows_per_s"); lance = median("ingest.lance", "rows_per_s")
  lode_all = median("ingest.lode", "rows_per_s_indexed"); lance_all = median("ingest.lance", "rows_per_s_indexed")
  synced = median("ingest.synced", "rows_per_s")
  small = median("small.lode", "rows_per_s"); chroma = got("small.chroma.rows_per_s")
  small_all = median("small.lode", "rows_per_s_indexed")
  rows = thousands(got("size.rows")); few = thousands(got("size.chroma"))

  print "# Figures of the store\n"
  if (value["quick"] == 1) print "**A quick run with small sizes, to try the scripts. It proves nothing.**\n"
  printf "Made by `%s` (`make bench`) on %s with %s. %s, %s cores, %s of memory, %s; load average %s at the start.\n",
    text["text.command"], text["text.date"], text["text.lode"] == "" ? "lode" : text["text.lode"], text["text.cpu"],
    text["text.cores"], text["text.memory"], text["text.disk"], text["text.load"]
  printf "Appending 4 KiB to a file and fdatasync takes %s on this disk, 2 MiB %s (median).\n", show(got("disk.sync_4k_ms"), "ms"),
    show(got("disk.sync_2m_ms"), "ms")
  printf "Peers: %s; %s.\n",
    has("ingest.lance.1.version") ? "LanceDB " value["ingest.lance.1.version"] " (npm @lancedb/lancedb)" : "no LanceDB",
    has("small.chroma.version") ? "Chroma " value["small.chroma.version"] " (npm chromadb, its server)" : "no Chroma"
  for (i = 1; i <= n_skipped; i++) printf "\nSkipped %s.\n", skipped[i]
  for (i = 1; i <= n_failed; i++) printf "\n**Failed: %s.** Its figures are missing.\n", failed[i]

  print "\n| figure | lode | goal | peer in the same run | lode / peer | met |"
  print "|---|---|---|---|---|---|"
  row("ingest, " rows " records in batches of 1,000, each durable", show(lode, "records/s"), "at least LanceDB's",
    "LanceDB " show(lance, "records/s"), ratio(lode, lance), verdict(lode != "" && lance != "", lode >= lance))
  row("the same, LanceDB's batches synced as well", show(lode, "records/s"), "", "LanceDB " show(synced, "records/s"), ratio(lode, synced), "")
  row("the same until text and 5 metadata keys are indexed (no vector index on either side)", show(lode_all, "records/s"), "",
    "LanceDB " show(lance_all, "records/s"), ratio(lode_all, lance_all), "")
  row("ingest, " few " records", show(small, "records/s"), "20 x Chroma's", "Chroma " show(chroma, "records/s"), ratio(small, chroma),
    verdict(small != "" && chroma != "", small >= 20 * chroma))
  row("the same until text and metadata are indexed (Chroma: all of its indexes)", show(small_all, "records/s"), "", "Chroma " show(chroma, "records/s"), ratio(small_all, chroma), "")
  below("`lode db count`, " thousands(got("size.small")) " records, process start to end (median)",
    median("count.small", "median_ms"), "ms", 10, "under 10 ms", "", "")
  below("`lode db count`, " thousands(got("size.large")) " records", median("count.large", "median_ms"), "ms", 10, "under 10 ms", "", "")
  below("delete of " thousands(got("size.paths")) " paths by `$in`, out of " thousands(got("size.delete")) " records", got("delete.lode.seconds"), "s", 2, "under 2 s", got("delete.lance.seconds"), " (LanceDB, `IN`)")
  below("its memory growth", mb(got("delete.lode.growth_mib")), "MB", 64, "under 64 MB", mb(got("delete.lance.growth_mib")), " (LanceDB)")
  ids = got("ids.lode.median_ms"); base = got("count.large.1.peak_mib"); peak = got("ids.lode.peak_mib")
  below("delete of " thousands(got("size.large")) " ids, `lode db delete --ids-file`, whole process", ids == "" ? "" : ids / 1000, "s", 2,
    "under 2 s", "", "")
  below("its memory growth (above `lode db count`)", peak == "" || base == "" ? "" : mb(peak - base), "MB", 64, "under 64 MB", "", "")
  below(thousands(got("size.adds")) " single adds: files in the folder", got("adds.lode.files"), "", 8, "at most 8", got("adds.lance.files"), " (LanceDB)")
  below("bytes on disk / bytes of data", got("adds.lode.bytes_ratio"), "", 2, "at most 2", got("adds.lance.bytes_ratio"), " (LanceDB)")
  flat = got("adds.lode.first_ms") ? got("adds.lode.last_ms") / got("adds.lode.first_ms") : ""
  flat_lance = got("adds.lance.first_ms") ? got("adds.lance.last_ms") / got("adds.lance.first_ms") : ""
  below("time of the last " int(got("size.adds") / 10) " / of the first", flat, "", 1.25, "flat (at most 1.25)", flat_lance, " (LanceDB)")
  percent = got("query.lode.percent")
  row("exact query through lode_query, " rows " x 384, of a plain read's bandwidth", show(percent, "%"),
    "at least 60 %", "", "", verdict(percent != "", percent >= 60))
  row("the same when the index holds the vectors: read from its file, each checked", show(got("query.indexed.percent"), "%"), "", "", "", "")
  kernel = got("kernel.l2_percent")
  row("the scan kernel alone", show(kernel, "%"), "at least 60 %", "", "", verdict(kernel != "", kernel >= 60))
  row("the same query's time (median)", show(got("query.lode.median_ms"), "ms"), "", "LanceDB " show(got("query.lance.median_ms"), "ms"),
    ratio(got("query.lode.median_ms"), got("query.lance.median_ms")), "")
  budget = got("fill.large.budget_mib")
  below("peak memory of ingesting " thousands(got("size.large")) " records", got("fill.large.peak_mib"), "MiB", budget,
    "the budget, " show(budget, "MiB"), "", "")
  below("the same, indexes caught up", got("fill.large.peak_indexed_mib"), "MiB", budget, "the budget, " show(budget, "MiB"), "", "")
  below("reader's p99 (10 records by id) beside commits of 1 record", got("readers.1.p99_ms"), "ms", 30, "under 30 ms", "", "")
  below("beside commits of 1,000 records", got("readers.1000.p99_ms"), "ms", 30, "under 30 ms", "", "")

  print "\n## Notes\n"
  printf "- The same rows everywhere: id, 500-byte document, 5 metadata keys, 384 floats; a checksum of the data is compared between the\n  programs. Making them is not timed. Medians of the rounds.\n"
  printf "- Ingest, records/s by round: lode %s; LanceDB %s; LanceDB synced %s.\n", every("ingest.lode", "rows_per_s"),
    every("ingest.lance", "rows_per_s"), every("ingest.synced", "rows_per_s")
  if (has("ingest.lance.syncs"))
    printf "- LanceDB made %d sync calls in 5 batches of 1,000 (strace): its acknowledgement does not wait for the disk.\n  \"synced\" adds that, for its new files and their folders.\n", value["ingest.lance.syncs"]
  printf "- lode's maintenance thread indexes while the records come in. At the last acknowledgement %s records waited for the text\n  index, %s for the metadata index; lode_optimize() then took %s for the two. Slowest batch %s (LanceDB %s).\n",
    show(median("ingest.lode", "untexted"), ""), show(median("ingest.lode", "unindexed"), ""), show(median("ingest.lode", "optimize_s"), "s"),
    show(median("ingest.lode", "slowest_batch_ms"), "ms"), show(median("ingest.lance", "slowest_batch_ms"), "ms")
  printf "- %s records: %s acknowledged, %s; then lode_optimize() %s, the vector index included; %s on disk.\n", thousands(got("size.large")),
    show(got("fill.large.seconds"), "s"), show(got("fill.large.rows_per_s"), "records/s"), show(got("fill.large.optimize_all_s"), "s"),
    show(got("fill.large.disk_mib"), "MiB")
  printf "- `lode db count`: best %s and %s of %s runs each.\n", show(least("count.small", "best_ms"), "ms"),
    show(least("count.large", "best_ms"), "ms"), show(got("size.runs") * 2, "")
  printf "- The delete by paths removed %s records; erasing their bytes afterwards (lode_optimize()) took %s.\n", show(got("delete.lode.deleted"), ""), show(got("delete.lode.optimize_s"), "s")
  printf "- A single add takes %s (median; mean of the first part %s, of the last %s; LanceDB %s and %s).\n", show(got("adds.lode.median_ms"), "ms"),
    show(got("adds.lode.first_ms"), "ms"), show(got("adds.lode.last_ms"), "ms"), show(got("adds.lance.first_ms"), "ms"), show(got("adds.lance.last_ms"), "ms")
  printf "- Plain read: %s GB/s, query %s GB/s; first query of a process %s (LanceDB %s). Kernel: cosine %s, ip %s.\n", short(got("query.lode.plain_read_gb_per_s")),
    short(got("query.lode.gb_per_s")), show(got("query.lode.first_ms"), "ms"), show(got("query.lance.first_ms"), "ms"),
    show(got("kernel.cosine_percent"), "%"), show(got("kernel.ip_percent"), "%")
  if (has("readers.1.reads") && has("readers.1000.reads")) printf "- Readers: without a writer p50 %s, p99 %s. Beside commits of 1: p50 %s, worst %s, %s commits/s. Beside commits of\n  1,000: p50 %s, worst %s, %s commits/s. No read failed or came back incomplete.\n",
    show(got("readers.0.p50_ms"), "ms"), show(got("readers.0.p99_ms"), "ms"), show(got("readers.1.p50_ms"), "ms"), show(got("readers.1.worst_ms"), "ms"),
    show(got("readers.1.commits_per_s"), ""), show(got("readers.1000.p50_ms"), "ms"), show(got("readers.1000.worst_ms"), "ms"),
    show(got("readers.1000.commits_per_s"), "")
}
