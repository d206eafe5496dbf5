#compdef lode
# zsh completion of lode; made by: lode help --completions zsh
_lode_collections() {
  local -a names
  names=(${(f)"$(lode db collections --json --quiet 2>/dev/null | sed -n 's/^{"name":"\([^"\\]*\)".*/\1/p')"})
  compadd -a names
}
_lode_db() {
  local -a verbs common
  verbs=(
    'create:make a collection, and the store if there is none'
    'collections:list the collections'
    'rename:give a collection another name'
    'drop:remove a collection and all its records'
    'add:add records, one JSON object a line'
    'upsert:add records, or replace parts of those that exist'
    'update:change records that exist'
    'get:show records by id or filter'
    'query:find the nearest records by vector, words or both'
    'delete:delete records by id or filter'
    'count:print the number of records'
    'facets:count the records by each value of a metadata key'
    'stats:figures of the store or of one collection'
    'verify:check everything and name each damage'
    'salvage:read what can be read of a damaged store into a new one'
    'backup:write the whole store to one file while it is in use'
    'restore:make a store from a backup'
    'compact:rewrite the store as small as it can be'
    'optimize:do the pending background work now'
    'export:write records as JSON lines'
    'import:read records from a file\: JSON lines, .npy or .fvecs'
  )
  common=(
    '--store[the store'\''s folder; when not given, the nearest .lode folder upward, else $XDG_DATA_HOME/lode, else ~/.local/share/lode]:DIR:_files -/'
    '--json[one JSON object a line; errors too, on standard error]'
    '--full[show documents whole, not their first lines]'
    '--quiet[no progress, no notices, no reports of what was done]'
    '--color[colours; auto\: on a terminal, unless NO_COLOR is set]:WHEN:(auto always never)'
    '--read-only[never write to the store; commands that read never do]'
    '--busy-ms[how long to wait for a lock that another process holds (10,000)]:N:'
    '--memory[budget for caches and transactions (256M, at least 16M)]:SIZE:'
    '--max-document[largest document that is taken (64M, at most 256M)]:SIZE:'
    '--help[show help]'
    '--version[show the version]'
  )
  if (( CURRENT == 2 )); then
    _describe 'command' verbs
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
    create)
      _arguments $common \
        ':NAME:_lode_collections' \
        '--metric[distance of a new collection\: squared Euclidean, 1 - cosine, 1 - inner product]:METRIC:(l2 cosine ip)' \
        '--metadata[any JSON object, kept with the collection]:JSON:' \
        '--embedder[name of the model that makes the vectors; vectors of another one are refused]:MODEL:' \
        '--embedder-dim[dimension of that model]:N:' \
        '--counters[metadata keys whose values are counted by each write, so that facets of them cost nothing]:KEY,KEY:' \
        '--if-missing[succeed when the collection exists already]' \
        '--page-bytes[page size of a new store, a power of two (16,384)]:N:' ;;
    collections)
      _arguments $common ;;
    rename)
      _arguments $common \
        ':NAME:_lode_collections' \
        ':NEW:' ;;
    drop)
      _arguments $common \
        ':NAME:_lode_collections' ;;
    add)
      _arguments $common \
        ':NAME:_lode_collections' \
        '::FILE:_files' \
        '--on-existing[an id that exists\: refuse the batch, or keep the old record and go on]:WHAT:(fail keep)' \
        '--create[make the collection if it does not exist]' \
        '--metric[distance of a new collection\: squared Euclidean, 1 - cosine, 1 - inner product]:METRIC:(l2 cosine ip)' \
        '--batch[records in one commit (1,000); each commit is whole or absent, and durable]:N:' ;;
    upsert)
      _arguments $common \
        ':NAME:_lode_collections' \
        '::FILE:_files' \
        '--create[make the collection if it does not exist]' \
        '--metric[distance of a new collection\: squared Euclidean, 1 - cosine, 1 - inner product]:METRIC:(l2 cosine ip)' \
        '--batch[records in one commit (1,000); each commit is whole or absent, and durable]:N:' ;;
    update)
      _arguments $common \
        ':NAME:_lode_collections' \
        '::FILE:_files' \
        '--batch[records in one commit (1,000); each commit is whole or absent, and durable]:N:' ;;
    get)
      _arguments $common \
        ':NAME:_lode_collections' \
        '--ids[these records only; on the command line separated by commas, or a JSON array for ids that hold commas or begin with \[]:ID,ID:' \
        '--ids-file[the ids of this file, one a line (- is standard input)]:FILE:_files' \
        '--where[records whose metadata match this filter (lode help filters)]:JSON:' \
        '--where-document[records whose document matches this filter]:JSON:' \
        '--pending[only records that have no vector yet]' \
        '--limit[at most so many records; 0 = all. When not given\: all of the ids that are asked for, else 100]:N:' \
        '--offset[skip so many records]:N:' \
        '--after[go on behind an earlier answer\: its `next`; unlike --offset this costs nothing]:CURSOR:' \
        '--include[parts of each record to show]:PART,PART:' ;;
    query)
      _arguments $common \
        ':NAME:_lode_collections' \
        '--vector[what to look for\: an array of numbers]:JSON:' \
        '--vectors[several vectors at once; on the command line a file\: .npy, .fvecs, or one JSON array a line]:FILE:_files' \
        '--text[words to look for]:TEXT:' \
        '--mode[rank by words (BM25), by distance, or by both fused; when not given, by what is given]:MODE:(text vector hybrid)' \
        '-k[how many records for each query]:N:' \
        '--ids[these records only; on the command line separated by commas, or a JSON array for ids that hold commas or begin with \[]:ID,ID:' \
        '--ids-file[the ids of this file, one a line (- is standard input)]:FILE:_files' \
        '--where[records whose metadata match this filter (lode help filters)]:JSON:' \
        '--where-document[records whose document matches this filter]:JSON:' \
        '--vector-weight[hybrid\: weight of the ranking by distance]:X:' \
        '--text-weight[hybrid\: weight of the ranking by words]:X:' \
        '--include[parts of each record to show]:PART,PART:' ;;
    delete)
      _arguments $common \
        ':NAME:_lode_collections' \
        '--ids[these records only; on the command line separated by commas, or a JSON array for ids that hold commas or begin with \[]:ID,ID:' \
        '--ids-file[the ids of this file, one a line (- is standard input)]:FILE:_files' \
        '--where[records whose metadata match this filter (lode help filters)]:JSON:' \
        '--where-document[records whose document matches this filter]:JSON:' ;;
    count)
      _arguments $common \
        ':NAME:_lode_collections' ;;
    facets)
      _arguments $common \
        ':NAME:_lode_collections' \
        ':KEY:' \
        '--where[records whose metadata match this filter (lode help filters)]:JSON:' \
        '--limit[at most so many values; 0 = all]:N:' ;;
    stats)
      _arguments $common \
        '::NAME:_lode_collections' ;;
    verify)
      _arguments $common ;;
    salvage)
      _arguments $common \
        ':DIR:_files -/' \
        '--from[the damaged store'\''s folder, or its file; --store when not given]:PATH:_files' ;;
    backup)
      _arguments $common \
        ':FILE:_files' ;;
    restore)
      _arguments $common \
        ':FILE:_files' \
        '::DIR:_files -/' ;;
    compact)
      _arguments $common ;;
    optimize)
      _arguments $common ;;
    export)
      _arguments $common \
        ':NAME:_lode_collections' \
        '::FILE:_files' \
        '--ids[these records only; on the command line separated by commas, or a JSON array for ids that hold commas or begin with \[]:ID,ID:' \
        '--ids-file[the ids of this file, one a line (- is standard input)]:FILE:_files' \
        '--where[records whose metadata match this filter (lode help filters)]:JSON:' \
        '--where-document[records whose document matches this filter]:JSON:' \
        '--include[parts of each record to show]:PART,PART:' ;;
    import)
      _arguments $common \
        ':NAME:_lode_collections' \
        ':FILE:_files' \
        '--format[of the file; when not given, by its extension, else jsonl]:FORMAT:(jsonl npy fvecs)' \
        '--mode[what to do with each record]:MODE:(add upsert update)' \
        '--on-existing[an id that exists\: refuse the batch, or keep the old record and go on]:WHAT:(fail keep)' \
        '--first-id[npy and fvecs\: ids are decimal numbers from here]:N:' \
        '--create[make the collection if it does not exist]' \
        '--metric[distance of a new collection\: squared Euclidean, 1 - cosine, 1 - inner product]:METRIC:(l2 cosine ip)' \
        '--batch[records in one commit (1,000); each commit is whole or absent, and durable]:N:' ;;
  esac
}
_lode() {
  if (( CURRENT == 2 )); then
    compadd db help version -- --help --version
    return
  fi
  case $words[2] in
    db) shift words; (( CURRENT-- )); _lode_db ;;
    help) compadd db exit-codes filters records store ;;
  esac
}
compdef _lode lode
