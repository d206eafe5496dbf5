// play.mjs - 50 questions about five repositories, played by fixed policies of tool calls: is the answer in the output, at what cost.
//   node bench/agents/play.mjs LODE FOLDER-OF-REPOSITORIES [PYTHON-WITH-SEMBLE]
// Prints the tables of bench/AGENTS.md. No model plays: a policy is a list of calls that is written down here, the same for every question of its
// kind, and ends at the first output after which all that was asked for has been seen. AGENTS_SHOW=1 prints each question with its outcome.
//
// An answer is a list of places (questions.json). One has been seen if an output names a range of lines of that file that meets it, or a line of
// an output holds the path and the name. Tokens are bytes of output through four.
import { spawn, execFileSync } from 'node:child_process'
import { readFileSync, existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { resolve } from 'node:path'

const [lode, folder, python] = process.argv.slice(2)
const questions = JSON.parse(readFileSync(new URL('questions.json', import.meta.url)))
const show = process.env.AGENTS_SHOW

// A process that answers each line with one line.
const talk = (command, args, cwd) => {
  const child = spawn(command, args, { cwd, stdio: ['pipe', 'pipe', 'ignore'] }), waiting = []
  createInterface({ input: child.stdout }).on('line', line => waiting.shift()?.(line))
  return { ask: text => new Promise(done => { waiting.push(done); child.stdin.write(text + '\n') }), end: () => child.kill() }
}

// ---- What an output says ----

// "path:12-40", "path:12", and "12-40" in a line that is indented below a line with a path: ranges of lines that it names.
const spans_of = text => {
  const spans = [...text.matchAll(/([\w./@+-]+\.\w+):(\d+)(?:-(\d+))?/g)].map(m => ({ path: m[1].replace(/^\.\//, ''), first: +m[2], last: +(m[3] ?? m[2]) }))
  let path = ''
  for (const line of text.split('\n')) {
    const listed = /^ +(\d+)-(\d+) /.exec(line)
    if (/^\S+\.\w+$/.test(line)) path = line
    else if (listed && path) spans.push({ path, first: +listed[1], last: +listed[2] })
  }
  return spans
}
const facts_of = q => q.facts.map(f => {
  const [, path, first, last, name] = /^(.*):(\d+)(?:-(\d+))? (.*)$/.exec(f)
  return { path, first: +first, last: +(last ?? first), name: name.split('.').at(-1) }
})
const sees = (output, fact) => {
  const spans = output.spans ?? spans_of(output.text)
  if (spans.some(s => s.path === fact.path && s.first <= fact.last && s.last >= fact.first)) return true
  const word = new RegExp(`(?<![\\w$])${fact.name}(?![\\w$])`)
  return output.text.split('\n').some(line => line.includes(fact.path) && word.test(line.replaceAll(fact.path, '')))
}

// ---- Lode, through MCP ----

const open_lode = root => {
  const server = talk(resolve(lode), ['mcp', root], root)
  let id = 0
  const call = async (name, args) => {
    const reply = JSON.parse(await server.ask(JSON.stringify({ jsonrpc: '2.0', id: ++id, method: 'tools/call', params: { name, arguments: args } })))
    return { text: (reply.result?.content ?? []).map(c => c.text).join('\n') || reply.error.message }
  }
  // the first definition that a list of results names
  const first = output => {
    const m = /^1\. ([^:\n]+):(\d+)-(\d+)(?: (?:\w+) (?:.*\/ )?([\w.:~]+))?/m.exec(output.text)
    return m && { path: m[1], line: +m[2], name: m[4] }
  }
  return { end: server.end, policy: {
    async *where(q) {
      const found = yield call('search', { query: q.ask })
      const top = first(found)
      if (top) yield call('outline', { file: top.path })
      yield call('search', { query: q.ask, limit: 20, max_tokens: 4000 })
    },
    async *how(q) {
      const found = yield call('search', { query: q.ask })
      const top = first(found)
      if (top?.name) yield call('symbol', { name: `${top.path}:${top.name}`, what: 'callees' })
      if (top?.name) yield call('symbol', { name: `${top.path}:${top.name}`, what: 'callers' })
      if (top) yield call('outline', { file: top.path })
      yield call('search', { query: q.ask, limit: 20, max_tokens: 4000 })
    },
    async *breaks(q) {
      yield call('symbol', { name: q.name, what: 'callers' })
      yield call('impact', { name: q.name })
      yield call('symbol', { name: q.name, what: 'references' })
    } } }
}

// ---- grep and read ----

const open_grep = root => {
  const grep = (pattern, flags) => {
    let lines = []
    try {
      lines = execFileSync('grep', [`-rnI${flags}`, '-E', '--exclude-dir=.git', '--exclude-dir=.lode', '--exclude-dir=node_modules', pattern, '.'], { cwd: root, maxBuffer: 1 << 28 })
        .toString().split('\n').filter(Boolean).map(l => l.slice(2))
    } catch {}
    return { all: lines, text: lines.slice(0, 250).map(l => l.slice(0, 300)).join('\n') } // as agents' own grep: at most 250 lines
  }
  const read = path => {
    const lines = readFileSync(`${root}/${path}`, 'utf8').split('\n').slice(0, 2000) // as agents' own read
    return { text: lines.map((l, i) => `${i + 1}\t${l}`).join('\n'), spans: [{ path, first: 1, last: lines.length }] }
  }
  // code before documents and tests, then by hits
  const best = found => {
    const hits = new Map()
    for (const l of found.all) { const path = l.slice(0, l.indexOf(':')); hits.set(path, (hits.get(path) ?? 0) + 1) }
    const aside = path => /\.(md|txt|json|html|tcl|lock|yml)$/.test(path) || /(^|[/_.])tests?([/_.]|$)|(^|\/)deps\//.test(path)
    return [...hits].sort((a, b) => aside(a[0]) - aside(b[0]) || b[1] - a[1]).slice(0, 3).map(([path]) => path)
  }
  const look = async function* (q) {
    const found = yield grep(q.grep, 'i')
    for (const path of best(found)) yield read(path)
  }
  return { grep, end: () => {}, policy: { where: look, how: look,
    async *breaks(q) {
      const found = yield grep(q.grep, 'w')
      for (const path of best(found)) yield read(path)
    } } }
}

// ---- semble, by words; for users of a name it says itself: use grep ----

const open_semble = root => {
  const server = talk(python, [new URL('semble_words.py', import.meta.url).pathname, root], root), grep = open_grep(root)
  const search = async (query, top_k) => {
    const text = JSON.parse(await server.ask(JSON.stringify({ query, top_k })))
    return { text, spans: (JSON.parse(text).results ?? []).map(r => ({ path: r.file_path, first: r.start_line, last: r.end_line })) }
  }
  const look = async function* (q) {
    const found = yield search(q.ask, 5)
    const top = found.spans[0]
    yield search(q.ask, 20)
    if (top) {
      const lines = readFileSync(`${root}/${top.path}`, 'utf8').split('\n').slice(0, 2000)
      yield { text: lines.map((l, i) => `${i + 1}\t${l}`).join('\n'), spans: [{ path: top.path, first: 1, last: lines.length }] }
    }
  }
  return { end: server.end, policy: { where: look, how: look,
    async *breaks(q) { yield search(q.name, 5); yield grep.grep(q.grep, 'w') } } }
}

// ---- The game ----

const players = [['Lode (MCP)', open_lode], ['grep and read', open_grep], ...(python ? [['semble 0.7.0, words', open_semble]] : [])]
const kinds = ['where', 'how', 'breaks']
const rows = []
for (const [player, open] of players) {
  const of = Object.fromEntries(kinds.map(k => [k, { n: 0, first: 0, found: 0, tokens: 0, calls: 0, facts: 0, seen: 0 }]))
  for (const repo of [...new Set(questions.map(q => q.repo))]) {
    const root = resolve(folder, repo)
    if (!existsSync(root)) { console.error(`no folder ${root}: bench/agents/README.md says which repositories`); process.exit(1) }
    if (open === open_lode && !existsSync(`${root}/.lode`)) execFileSync(lode, ['index', '--quiet'], { cwd: root })
    const tool = open(root)
    for (const q of questions.filter(q => q.repo === repo)) {
      const s = of[q.kind], missing = new Set(facts_of(q)), all = missing.size, calls = tool.policy[q.kind](q)
      let n = 0, tokens = 0, given
      while (missing.size) {
        const { value, done } = await calls.next(given)
        if (done) break
        given = value
        n++
        tokens += Math.ceil(Buffer.byteLength(given.text) / 4)
        for (const f of missing) if (sees(given, f)) missing.delete(f)
        if (n === 1 && !missing.size) s.first++
      }
      s.n++; s.found += !missing.size; s.tokens += tokens; s.calls += n; s.facts += all; s.seen += all - missing.size
      if (show) console.error(`${player}\t${missing.size ? 'no' : 'yes'}\t${n} calls\t${tokens} tokens\t${repo}: ${q.ask}\t${[...missing].map(f => `${f.path}:${f.first} ${f.name}`).join(', ')}`)
    }
    tool.end()
  }
  for (const k of kinds) rows.push([player, k, of[k]])
  const sum = kinds.map(k => of[k]).reduce((a, b) => Object.fromEntries(Object.keys(a).map(k => [k, a[k] + b[k]])))
  rows.push([player, 'all', sum])
}
console.log('| | questions | answered | by the first call | places seen | tokens a question | calls a question |\n|---|---|---|---|---|---|---|')
for (const [player, kind, s] of rows)
  console.log(`| ${player}: ${kind} | ${s.n} | ${s.found} | ${s.first} | ${s.seen} of ${s.facts} | ${Math.round(s.tokens / s.n)} | ${(s.calls / s.n).toFixed(1)} |`)
process.exit(0)
