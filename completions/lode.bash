# bash completion of lode; made by: lode help --completions bash
_lode() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb='' word flags=''
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in -*|db) ;; *) verb=$word; break ;; esac
  done
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W 'db help version --help --version' -- "$cur")); return
  fi
  if [[ $COMP_CWORD -eq 2 && $prev == db ]]; then
    COMPREPLY=($(compgen -W 'create collections rename drop add upsert update get query delete count facets stats verify salvage backup restore compact optimize export import' -- "$cur")); return
  fi
  case "$verb $prev" in
    "create --metric") COMPREPLY=($(compgen -W "l2 cosine ip" -- "$cur")); return ;;
    "add --on-existing") COMPREPLY=($(compgen -W "fail keep" -- "$cur")); return ;;
    "add --metric") COMPREPLY=($(compgen -W "l2 cosine ip" -- "$cur")); return ;;
    "upsert --metric") COMPREPLY=($(compgen -W "l2 cosine ip" -- "$cur")); return ;;
    "get --ids-file") COMPREPLY=($(compgen -f -- "$cur")); return ;;
    "get --include") COMPREPLY=($(compgen -W "document metadata embedding" -- "$cur")); return ;;
    "query --vectors") COMPREPLY=($(compgen -f -- "$cur")); return ;;
    "query --mode") COMPREPLY=($(compgen -W "text vector hybrid" -- "$cur")); return ;;
    "query --ids-file") COMPREPLY=($(compgen -f -- "$cur")); return ;;
    "query --include") COMPREPLY=($(compgen -W "document metadata embedding" -- "$cur")); return ;;
    "delete --ids-file") COMPREPLY=($(compgen -f -- "$cur")); return ;;
    "salvage --from") COMPREPLY=($(compgen -f -- "$cur")); return ;;
    "export --ids-file") COMPREPLY=($(compgen -f -- "$cur")); return ;;
    "export --include") COMPREPLY=($(compgen -W "document metadata embedding" -- "$cur")); return ;;
    "import --format") COMPREPLY=($(compgen -W "jsonl npy fvecs" -- "$cur")); return ;;
    "import --mode") COMPREPLY=($(compgen -W "add upsert update" -- "$cur")); return ;;
    "import --on-existing") COMPREPLY=($(compgen -W "fail keep" -- "$cur")); return ;;
    "import --metric") COMPREPLY=($(compgen -W "l2 cosine ip" -- "$cur")); return ;;
    *" --store") COMPREPLY=($(compgen -d -- "$cur")); return ;;
    *" --color") COMPREPLY=($(compgen -W "auto always never" -- "$cur")); return ;;
    "help --completions") COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur")); return ;;
  esac
  case $verb in
    create) flags='--metric --metadata --embedder --embedder-dim --counters --if-missing --page-bytes ' ;;
    collections) flags='' ;;
    rename) flags='' ;;
    drop) flags='' ;;
    add) flags='--on-existing --create --metric --batch ' ;;
    upsert) flags='--create --metric --batch ' ;;
    update) flags='--batch ' ;;
    get) flags='--ids --ids-file --where --where-document --pending --limit --offset --after --include ' ;;
    query) flags='--vector --vectors --text --mode -k --ids --ids-file --where --where-document --vector-weight --text-weight --include ' ;;
    delete) flags='--ids --ids-file --where --where-document ' ;;
    count) flags='' ;;
    facets) flags='--where --limit ' ;;
    stats) flags='' ;;
    verify) flags='' ;;
    salvage) flags='--from ' ;;
    backup) flags='' ;;
    restore) flags='' ;;
    compact) flags='' ;;
    optimize) flags='' ;;
    export) flags='--ids --ids-file --where --where-document --include ' ;;
    import) flags='--format --mode --on-existing --first-id --create --metric --batch ' ;;
    help) flags='--completions --schema --man exit-codes filters records store db' ;;
  esac
  if [[ $cur == -* || $verb == help ]]; then
    COMPREPLY=($(compgen -W "$flags --store --json --full --quiet --color --read-only --busy-ms --memory --max-document --help --version " -- "$cur"))
  elif [[ $prev == "$verb" ]]; then
    COMPREPLY=($(compgen -W "$(lode db collections --json --quiet 2>/dev/null | sed -n 's/^{"name":"\([^"\\]*\)".*/\1/p')" -- "$cur"))
    [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- "$cur"))
  else
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}
complete -F _lode lode
