// oracle.mjs - definitions and calls as Lode sees them, beside a language server's answers, on a sample of one repository.
//   node bench/symbols/oracle.mjs LODE FOLDER LANGUAGE-ID 'SERVER ARGS' [FUNCTIONS]
// Prints one line of a table: definitions (precision, recall), calls called resolved (precision), calls (recall). A call is counted where the
// server names a definition inside the repository. Where it names a declaration of C, it is asked again there, until it names the definition;
// if it knows none, the declaration itself counts, and Lode must name that. Lode's index of the folder is made here if there is none, and for
// clangd a compile_commands.json with every folder of headers. ORACLE_SHOW=1 prints each difference. "dump COMMAND" is a program that
// prints all definitions and calls of the folder instead of a server: Javac.java.
import { spawn, execFileSync } from 'node:child_process'
import { readFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { resolve, relative, join } from 'node:path'
import { pathToFileURL, fileURLToPath } from 'node:url'

const [program_of_lode, folder, language, command, count = '40'] = process.argv.slice(2)
const lode = resolve(program_of_lode)
const root = resolve(folder)
const run = (...args) => {
  try {
    return execFileSync(lode, [...args, '--json'], { cwd: root, maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'] }).toString()
      .split('\n').filter(Boolean).map(line => JSON.parse(line))
  } catch { return [] }
}
if (!existsSync(`${root}/.lode`)) execFileSync(lode, ['index', '--quiet'], { cwd: root, stdio: 'ignore' })

// ---- What clangd needs to know ----
if (language === 'c' && !existsSync(`${root}/compile_commands.json`)) {
  const sources = [], headers = new Set()
  const walk = at => { for (const e of readdirSync(at, { withFileTypes: true })) {
    if (e.name.startsWith('.')) continue
    if (e.isDirectory()) walk(join(at, e.name))
    else if (e.name.endsWith('.c')) sources.push(join(at, e.name))
    else if (e.name.endsWith('.h')) headers.add(at)
  } }
  walk(root)
  const flags = [...headers].map(h => `-I${h}`)
  writeFileSync(`${root}/compile_commands.json`, JSON.stringify(sources.map(file => ({ directory: root, file,
    arguments: ['cc', '-D_GNU_SOURCE', ...flags, '-c', file] }))))
}

// ---- What a compiler dumped ----
const [program, ...args] = command.replace(/^dump /, '').split(' ')
const dumped = command.startsWith('dump ') && { defs: new Map(), calls: new Map() }
if (dumped)
  for (const line of execFileSync(program, [...args, root], { maxBuffer: 1 << 30, stdio: ['ignore', 'pipe', 'inherit'] }).toString().split('\n').filter(Boolean)) {
    const f = JSON.parse(line)
    if (f.def) dumped.defs.set(f.path, [...(dumped.defs.get(f.path) ?? []), { name: f.def, line: f.line }])
    else dumped.calls.set(`${f.path}:${f.line}:${f.column}`, f.to ?? { path: '../library', line: 1 })
  }

// ---- A client of the language server ----
const server = dumped ? { stdout: { on() {} }, stdin: { write() {} }, kill() {} } : spawn(program, args, { cwd: root, stdio: ['pipe', 'pipe', 'ignore'] })
let buffer = Buffer.alloc(0), next = 1
const waiting = new Map()
server.stdout.on('data', data => {
  buffer = Buffer.concat([buffer, data])
  for (;;) {
    const head = buffer.indexOf('\r\n\r\n')
    if (head < 0) return
    const size = Number(/Content-Length: (\d+)/i.exec(buffer.subarray(0, head).toString())[1])
    if (buffer.length < head + 4 + size) return
    const message = JSON.parse(buffer.subarray(head + 4, head + 4 + size).toString())
    buffer = buffer.subarray(head + 4 + size)
    if (message.method && message.id !== undefined) {
      const items = message.params?.items
      send({ id: message.id, result: items ? items.map(() => ({})) : null })
    } else if (waiting.has(message.id)) {
      waiting.get(message.id)(message.result ?? null)
      waiting.delete(message.id)
    }
  }
})
const send = message => {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message })
  server.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}
const ask = (method, params) => dumped ? null : new Promise(done => {
  const id = next++
  const timer = setTimeout(() => { waiting.delete(id); done(null) }, 60000)
  waiting.set(id, result => { clearTimeout(timer); done(result) })
  send({ id, method, params })
})
const uri = path => pathToFileURL(`${root}/${path}`).href
const texts = new Map()
const open = path => {
  if (texts.has(path)) return texts.get(path)
  const text = readFileSync(`${root}/${path}`, 'utf8')
  texts.set(path, text.split('\n'))
  send({ method: 'textDocument/didOpen', params: { textDocument: { uri: uri(path), languageId: language, version: 1, text } } })
  return texts.get(path)
}
const tsserver = process.env.ORACLE_TSSERVER ? { tsserver: { path: process.env.ORACLE_TSSERVER } } : undefined
await ask('initialize', { processId: process.pid, initializationOptions: tsserver, rootUri: pathToFileURL(root).href,
  workspaceFolders: [{ uri: pathToFileURL(root).href, name: 'r' }],
  capabilities: { textDocument: { documentSymbol: { hierarchicalDocumentSymbolSupport: true }, definition: { linkSupport: false } },
    workspace: { configuration: true, workspaceFolders: true } } })
send({ method: 'initialized', params: {} })

// ---- What Lode knows ----
const endings = { c: /\.c$/, go: /\.go$/, python: /\.py$/, typescript: /(?<!\.d)\.tsx?$/, javascript: /\.js$/, rust: /\.rs$/, java: /\.java$/ }[language]
const functions = run('outline', '-n', '100000').filter(d => endings.test(d.path) && !/test|vendor|lexer\.c|parser\.c/i.test(d.path)) // no copies of others, and none with #line
let seed = 7
const random = n => (seed = (seed * 1103515245 + 12345) % 2147483648) % n
const files = [...new Set(functions.map(d => d.path))]
for (let i = files.length - 1; i > 0; i--) { const k = random(i + 1); [files[i], files[k]] = [files[k], files[i]] }
const sample = files.slice(0, 20)
for (const path of sample.slice(0, 5)) open(path)
if (!dumped) await new Promise(done => setTimeout(done, Number(process.env.ORACLE_WAIT_MS ?? 20000))) // until its index is ready

// ---- Definitions: functions, methods and types ----
const kinds = new Set(['function', 'method', 'constructor', 'class', 'struct', 'union', 'interface', 'trait', 'enum'])
const lsp_kinds = new Set([5, 6, 9, 10, 11, 12, 23])
if (language === 'go' || language === 'c') kinds.add('type') // the servers list a named type as a class
let def = { both: 0, lode: 0, server: 0 }
const defs = new Map()
for (const path of sample) {
  open(path)
  const mine = run('outline', path, '-n', '100000')
  defs.set(path, mine)
  const theirs = []
  const walk = (list, depth) => { for (const s of list ?? []) {
    const at = s.selectionRange ?? s.location.range
    if (lsp_kinds.has(s.kind) && s.name && !(language === 'c' && depth && s.kind === 10)) theirs.push({ name: s.name.replace(/^.*[.)]/, '').replace(/[<(].*/, ''), line: at.start.line + 1 })
    walk(s.children, depth + 1) } }
  if (dumped) theirs.push(...(dumped.defs.get(path) ?? []).map(d => ({ ...d })))
  else walk(await ask('textDocument/documentSymbol', { textDocument: { uri: uri(path) } }), 0)
  if (!theirs.length) continue
  const depths = []
  let depth = 0
  for (const line of open(path)) {
    if (language === 'c' && /^\s*#\s*endif/.test(line)) depth--
    depths.push(depth)
    if (language === 'c' && /^\s*#\s*if/.test(line)) depth++
  }
  // names that a macro makes do not stand in the text
  for (let i = theirs.length - 1; i >= 0; i--) if (!open(path)[theirs[i].line - 1]?.includes(theirs[i].name)) theirs.splice(i, 1)
  const everywhere = line => depths[line - 1] === 0 // under an #if, the server sees one branch only
  const own = mine.filter(d => kinds.has(d.kind)).map(d => ({ name: d.name.split('.').at(-1), first: d.line, last: d.end_line })).filter(d => everywhere(d.first))
  for (let i = theirs.length - 1; i >= 0; i--) if (!theirs[i].name || !everywhere(theirs[i].line)) theirs.splice(i, 1)
  const fits = (a, b) => a.name === b.name && b.line >= a.first && b.line <= Math.min(a.last, a.first + 12)
  def.lode += own.length
  def.server += theirs.length
  def.both += own.filter(a => theirs.some(b => fits(a, b))).length
  def.found = (def.found ?? 0) + theirs.filter(b => own.some(a => fits(a, b))).length
  if (process.env.ORACLE_SHOW) {
    for (const a of own) if (!theirs.some(b => fits(a, b))) console.error('only lode', path, a.first, a.name)
    for (const b of theirs) if (!own.some(a => fits(a, b))) console.error('only server', path, b.line, b.name)
  }
}

// ---- Calls ----
const places_of = answer => [answer].flat().filter(Boolean).map(p => {
  const at = (p.range ?? p.targetSelectionRange).start
  return { path: relative(root, fileURLToPath(p.uri ?? p.targetUri)), line: at.line + 1, column: at.character }
})
const definition = async (path, line, column) => {
  if (dumped) return [dumped.calls.get(`${path}:${line}:${column}`)].filter(Boolean)
  let places = places_of(await ask('textDocument/definition', { textDocument: { uri: uri(path) }, position: { line: line - 1, character: column } }))
  // from a definition clangd leads back to its declaration: only a header's place is asked about
  if (language !== 'c' || places.length !== 1 || !/\.h$/.test(places[0].path) || places[0].path.startsWith('..')) return places
  const [first] = places
  open(first.path)
  const further = places_of(await ask('textDocument/definition', { textDocument: { uri: uri(first.path) }, position: { line: first.line - 1, character: first.column } }))
  const other = further.filter(p => p.path !== first.path || p.line !== first.line)
  return other.length ? other : places
}
let calls = { resolved: 0, right: 0, inside: 0, found: 0 }
const pool = sample.flatMap(path => defs.get(path).filter(d => ['function', 'method'].includes(d.kind) && !d.declared))
for (let i = pool.length - 1; i > 0; i--) { const k = random(i + 1); [pool[i], pool[k]] = [pool[k], pool[i]] }
for (const f of pool.slice(0, Number(count))) {
  const name = f.name.split('.').at(-1)
  const edges = run('callees', `${f.path}:${f.name.split('.').slice(-2).join('.')}`, '-n', '1000').filter(e => e.path === f.path && e.line >= f.line && e.line <= f.end_line)
  for (const e of edges) {
    const lines = open(e.path), callee = e.to.split('.').at(-1)
    const column = lines[e.line - 1]?.search(new RegExp(`(?<![\\w$])${callee.replace(/[$]/g, '\\$')}(?![\\w$])`)) ?? -1
    if (column < 0 || name === undefined) continue
    const places = await definition(e.path, e.line, column)
    if (!places.length) continue
    const inside = places.filter(p => !p.path.startsWith('..') && !p.path.includes('node_modules'))
    const sure = e.at && !e.candidates
    const [path, line] = e.at ? [e.at.replace(/:\d+$/, ''), Number(/:(\d+)$/.exec(e.at)[1])] : []
    let same = inside.some(p => p.path === path && p.line >= line && p.line <= line + 12)
    // the server knows a declaration in a header only, Lode a definition: asked again when it has read the file that Lode names
    if (!same && sure && language === 'c' && inside.length === 1 && /\.h$/.test(inside[0].path) && /\.c$/.test(path)) {
      open(path)
      for (let tries = 0; tries < 4 && !same; tries++) {
        await new Promise(done => setTimeout(done, 500))
        same = (await definition(e.path, e.line, column)).some(p => p.path === path && p.line >= line && p.line <= line + 12)
      }
    }
    if (sure) { calls.resolved++; calls.right += same }
    if (inside.length) { calls.inside++; calls.found += sure && same }
    if (process.env.ORACLE_SHOW && ((sure && !same) || (inside.length && !same)))
      console.error(sure ? 'wrong' : 'missed', `${e.path}:${e.line}`, e.to, e.at ?? '-', JSON.stringify(places[0]))
  }
}
const rate = (a, b) => b ? (a / b).toFixed(3) : '-'
console.log(`| ${root.split('/').at(-1)} | ${language} | ${program.split('/').at(-1)} | ${sample.length} | ${rate(def.both, def.lode)} | ${rate(def.found ?? 0, def.server)} | ${calls.resolved} | ${rate(calls.right, calls.resolved)} | ${calls.inside} | ${rate(calls.found, calls.inside)} |`)
server.kill()
process.exit(0)
