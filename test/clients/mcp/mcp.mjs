// mcp.mjs LODE PROJECT CLIENT [MODE] - a real MCP client against `lode mcp`: v1 is @modelcontextprotocol/sdk, v2 is
// @modelcontextprotocol/client in one of its modes (auto, legacy, pin). Both check each answer against the tool's output schema
// themselves. Ends with "N passed, N failed".
import assert from 'node:assert/strict'

const [lode, project, which, mode] = process.argv.slice(2)
let passed = 0
let failed = 0
const test = async (name, run) => {
  try {
    await run()
    passed++
  } catch (error) {
    failed++
    console.log(`FAILED ${which} ${mode ?? ''} ${name}: ${error.stack ?? error}`)
  }
}

async function connect(...flags) {
  const v1 = which === 'v1'
  const { Client } = await import(v1 ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client')
  const { StdioClientTransport } = await import(v1 ? '@modelcontextprotocol/sdk/client/stdio.js' : '@modelcontextprotocol/client/stdio')
  const options = {}
  if (!v1) options.versionNegotiation = { mode: mode === 'pin' ? { pin: '2026-07-28' } : mode }
  const client = new Client({ name: 'lode-test', version: '1.0.0' }, options)
  const transport = new StdioClientTransport({ command: lode, args: ['mcp', ...flags, project], stderr: 'ignore' })
  await client.connect(transport)
  return { client, transport }
}

const { client, transport } = await connect()
const call = (name, args = {}, options) => client.callTool({ name, arguments: args }, ...(which === 'v1' ? [undefined, options] : [options]))
const good = async (name, args, options) => {
  const result = await call(name, args, options)
  assert.ok(!result.isError, JSON.stringify(result))
  assert.equal(result.content[0].type, 'text')
  assert.ok(result.content[0].text.length > 0)
  return result.structuredContent
}

await test('the server says who it is', () => {
  assert.equal(client.getServerVersion()?.name, 'lode')
  assert.match(client.getInstructions(), /symbol/)
})

await test('tools are listed, in the same order each time', async () => {
  const { tools } = await client.listTools()
  const names = tools.map(tool => tool.name)
  assert.deepEqual(names, ['search', 'outline', 'symbol', 'impact', 'read', 'grep', 'status', 'index', 'memory'])
  assert.deepEqual((await client.listTools()).tools.map(tool => tool.name), names)
  for (const tool of tools) {
    assert.equal(tool.inputSchema.type, 'object')
  }
})

await test('prompts are listed, filled in, and refused without what they need', async () => {
  const { prompts } = await client.listPrompts()
  assert.deepEqual(prompts.map(p => p.name), ['review_change', 'explain_module', 'onboard', 'impact_of_change'])
  for (const p of prompts) {
    const given = Object.fromEntries((p.arguments ?? []).map(a => [a.name, 'net/retry.py']))
    const { messages } = await client.getPrompt({ name: p.name, arguments: given })
    assert.equal(messages[0].role, 'user')
    if (p.arguments) assert.match(messages[0].content.text, /"net\/retry\.py"/)
    if (p.arguments) await assert.rejects(client.getPrompt({ name: p.name }), /needs/)
  }
  await assert.rejects(client.getPrompt({ name: 'nothing' }), /no prompt/)
})

await test('index_project indexes, and tells its progress only upward', async () => {
  const seen = []
  const result = await good('index_project', {}, { onprogress: p => seen.push(p.progress), timeout: 60000 })
  assert.ok(result.files >= 3)
  assert.deepEqual(seen, [...seen].sort((a, b) => a - b))
})

await test('long work survives the client giving up: the next call takes it over', async () => {
  const { mkdirSync, writeFileSync, rmSync } = await import('node:fs')
  rmSync(`${project}/many`, { recursive: true, force: true })
  mkdirSync(`${project}/many`)
  for (let i = 0; i < 600; i++) {
    writeFileSync(`${project}/many/part${i}.c`, Array.from({ length: 20 }, (_, k) => `int part_${i}_${k}(int x) {\n  return x * ${k} + ${i};\n}\n`).join('\n'))
  }
  try {
    let tries = 0
    let gave = 0
    let result
    while (!result && tries++ < 1000) {
      const seen = []
      result = await call('index', {}, { onprogress: p => seen.push(p.progress), timeout: 150 }).catch(error => {
        assert.match(String(error), /timed out|timeout/i)
        gave++
      })
      assert.deepEqual(seen, [...seen].sort((a, b) => a - b))
    }
    assert.ok(result && !result.isError, JSON.stringify(result))
    assert.ok(gave >= 1, 'no call was given up: the test says nothing')
    // one run did it all: had one been stopped and another begun, some files would have been unchanged
    assert.match(result.content[0].text, /600 new.* [0-9] unchanged/)
    assert.ok((await good('get_project_status', {})).files >= 600)
  } finally {
    rmSync(`${project}/many`, { recursive: true })
    await call('index', {}, { timeout: 60000 })
  }
})

await test('resources are listed and read', async () => {
  const { resources } = await client.listResources()
  assert.deepEqual(resources.map(r => r.uri), ['lode://overview', 'lode://status', 'lode://hotspots', 'lode://cycles', 'lode://unused'])
  for (const r of resources) {
    const { contents } = await client.readResource({ uri: r.uri })
    assert.equal(contents[0].uri, r.uri)
    assert.ok(contents[0].text.length > 0 && contents[0].text.length < 32000, r.uri)
  }
  assert.match((await client.readResource({ uri: 'lode://overview' })).contents[0].text, /# Status[^]*state: ready[^]*# Outline[^]*open_socket[^]*# Hotspots/)
  const { resourceTemplates } = await client.listResourceTemplates()
  assert.deepEqual(resourceTemplates.map(r => r.uriTemplate), ['lode://outline/{+path}', 'lode://symbol/{+name}', 'lode://impact/{+name}'])
  for (const [uri, wanted] of [['lode://outline/net/socket.c', /close_socket/], ['lode://symbol/open_socket', /net\/socket\.c/], ['lode://impact/open_socket', /main/]]) {
    assert.match((await client.readResource({ uri })).contents[0].text, wanted, uri)
  }
  for (const uri of ['lode://nothing', 'lode://outline/net/nothing.c', 'lode://symbol/no_such_name', 'lode://outline/..%2f..%2fetc%2fpasswd']) {
    await assert.rejects(client.readResource({ uri }), /NOT_FOUND|INVALID|no resource/, uri)
  }
})

await test('every tool, with good arguments and with bad ones; what is missing is named as what it is', async () => {
  const collection = `every-${which}-${mode ?? 'x'}`
  for (const [name, args, wanted] of [
    ['search', { query: 'open_socket' }, /net\/socket\.c/], ['outline', { file: 'net/socket.c' }, /open_socket/], ['outline', {}, /retry/],
    ['symbol', { name: 'open_socket' }, /net\/socket\.c/], ['symbol', { name: 'open_socket', what: 'callers' }, /main/],
    ['symbol', { name: 'main', what: 'callees' }, /open_socket/], ['symbol', { name: 'open_socket', what: 'references' }, /main\.c/],
    ['impact', { name: 'open_socket' }, /main/], ['impact', { file: 'net/socket.c', line: 5 }, /main/],
    ['read', { file: 'net/socket.c', line: 4, lines: 2 }, /open_socket/], ['read', { name: 'retry' }, /pause/],
    ['grep', { pattern: 'open_[a-z]+\\(' }, /main\.c/], ['status', {}, /ready/], ['index', {}, /files/],
    ['memory', { action: 'add', collection, records: [{ id: 'a', document: 'tea' }] }, /./], ['memory', { action: 'query', collection, text: 'tea' }, /tea/]]) {
    const result = await call(name, args, { timeout: 60000 })
    assert.ok(!result.isError, `${name}: ${JSON.stringify(result)}`)
    const text = result.content.map(c => c.text).join('\n')
    assert.match(text, wanted, `${name} ${JSON.stringify(args)}`)
    assert.doesNotMatch(text, /`lode (?!model install|db embed)|--[a-z]/, `${name}: words of the command line`)
  }
  for (const [name, args, wanted] of [
    ['search', {}, /query/], ['search', { query: 'x', language: 'klingon' }, /klingon/], ['search', { file: 'net/nothing.c' }, /nothing\.c/],
    ['outline', { file: 'net/nothing.c' }, /nothing\.c/], ['symbol', { name: 'no_such_name' }, /no_such_name/], ['symbol', { name: 'x', what: 'everything' }, /what/],
    ['impact', { name: 'no_such_name' }, /no_such_name/], ['impact', { file: 'net/nothing.c', line: 3 }, /nothing\.c/],
    ['impact', { file: 'net/socket.c', line: 4000 }, /4000|line/],
    ['read', { file: 'net/nothing.c' }, /nothing\.c/], ['read', { file: 'net/socket.c', line: 4000 }, /4000|line/], ['read', { name: 'no_such_name' }, /no_such_name/],
    ['read', { file: '../../etc/passwd' }, /passwd/], ['grep', { pattern: '(' }, /pattern|byte|\(/], ['status', { check: 'yes' }, /check/], ['index', { force: 3 }, /force/],
    ['memory', { action: 'fly' }, /action/], ['memory', { action: 'get', collection: 'nothing-there', ids: ['a'] }, /nothing-there/], ['search', { query: 'x', max_tokens: 1 }, /max_tokens/]]) {
    const text = await call(name, args).then(r => {
      assert.ok(r.isError, `${name} ${JSON.stringify(args)}: ${JSON.stringify(r)}`)
      return r.content.map(c => c.text).join('\n')
    }, error => String(error))
    assert.match(text, wanted, `${name} ${JSON.stringify(args)}`)
    assert.doesNotMatch(text, /`lode (?!model install|db embed)|--[a-z]/, `${name}: words of the command line`)
  }
  assert.ok(JSON.stringify((await client.listTools()).tools).length < 12000)
})

await test('search_code finds a function', async () => {
  const { rows } = await good('search_code', { query: 'retry with growing pauses', limit: 3 })
  assert.ok(rows.length >= 1 && rows.length <= 3)
  assert.equal(rows[0].path, 'net/retry.py')
  assert.ok(rows[0].start_line >= 1 && rows[0].end_line >= rows[0].start_line)
})

await test('its filters work', async () => {
  assert.ok((await good('search_code', { query: 'open', language: 'c' })).rows.every(row => row.language === 'c'))
  assert.ok((await good('search_code', { query: 'open', path: 'net/**', mode: 'text' })).rows.every(row => row.path.startsWith('net/')))
  assert.deepEqual((await good('search_code', { query: 'open', name: 'open_socket', kind: 'function' })).rows.map(row => row.name), ['open_socket'])
})

await test('search_similar and search_context', async () => {
  assert.ok((await good('search_similar', { file: 'net/socket.c', line: 4 })).rows.length >= 1)
  const { rows } = await good('search_context', { name: 'open_socket' })
  assert.equal(rows[0].relation, 'definition')
  assert.ok(rows.some(row => row.relation === 'use' && row.path === 'main.c'), JSON.stringify(rows))
})

await test('get_project_status and embed_pending', async () => {
  assert.equal((await good('get_project_status', {})).state, 'ready')
  assert.equal(typeof (await good('embed_pending', {}, { timeout: 60000 })).pending, 'number')
})

await test('memory: add, upsert, get, query, count, delete', async () => {
  const collection = `notes-${which}-${mode ?? 'x'}`
  await good('add', { collection, records: [{ id: 'a', document: 'the build needs cmake', metadata: { topic: 'build' } }, { id: 'b', document: 'tea at four' }] })
  await good('upsert', { collection, records: [{ id: 'b', document: 'tea at five' }] })
  assert.equal((await good('count', { collection })).count, 2)
  assert.equal((await good('get', { collection, ids: ['b'] })).rows[0].document, 'tea at five')
  assert.equal((await good('query', { collection, text: 'cmake build' })).rows[0].id, 'a')
  assert.equal((await good('delete', { collection, where: { topic: 'build' } })).deleted, 1)
  assert.ok((await good('collections', {})).rows.some(row => row.name === collection && row.records === 1))
})

await test('bad arguments name the field', async () => {
  for (const [name, args, field] of [['search_code', { query: 'x', limit: 0 }, 'limit'], ['search_code', {}, 'query'], ['search_code', { query: 'x', modus: 1 }, 'modus'],
    ['get', { collection: 'nothing', where: 3 }, 'where'], ['add', { collection: 'code', records: [] }, 'collection']]) {
    const result = await call(name, args)
    assert.ok(result.isError, name)
    assert.ok(result.content[0].text.includes(field), result.content[0].text)
  }
})

await test('an unknown tool is an error of the protocol', async () => {
  await assert.rejects(call('no_such_tool', {}), error => error.code === -32602)
})

await test('a cancelled request ends, and the next one is answered', async () => {
  const control = new AbortController()
  const pending = call('index_project', { force: true }, { signal: control.signal, timeout: 60000 })
  setTimeout(() => control.abort('enough'), 5)
  await pending.then(() => {}, () => {})
  assert.equal((await good('get_project_status', {})).files >= 3, true)
})

await test('many requests at once', async () => {
  const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => good('search_code', { query: `socket ${i}`, limit: 1, mode: 'text' }, { timeout: 60000 })))
  assert.equal(answers.length, 200)
})

await test('with --compat the tools of mcp-vector-search are there, by their names and arguments', async () => {
  const compat = await connect('--compat')
  const { tools } = await compat.client.listTools()
  const calls = [['index_project', { force: false }, /files/], ['embed_chunks', { fresh: false, batch_size: 32 }, /./], ['kg_build', {}, /files/],
    ['get_project_status', {}, /files/], ['kg_stats', {}, /files/],
    ['search_code', { query: 'retry with growing pauses', limit: 3, similarity_threshold: 0.3, file_extensions: ['.py'] }, /net\/retry\.py/],
    ['search_hybrid', { query: 'retry with growing pauses', hybrid_alpha: 0.7, use_rerank: true }, /net\/retry\.py/],
    ['search_context', { description: 'opens a socket', focus_areas: ['network'] }, /net\/socket\.c/],
    ['search_similar', { file_path: 'net/socket.c', function_name: 'open_socket', limit: 2 }, /main\.c/],
    ['kg_query', { entity: 'open_socket', relationship: 'called_by' }, /main calls open_socket/],
    ['trace_execution_flow', { entry_point: 'main', depth: 2, direction: 'outgoing' }, /open_socket/],
    ['analyze_file', { file_path: 'net/retry.py' }, /retry/], ['get_complexity_hotspots', { limit: 2 }, /retry/], ['check_circular_dependencies', {}, /./]]
  try {
    for (const [name, args, wanted] of calls) {
      assert.ok(tools.some(tool => tool.name === name), `${name} is not listed`)
      const result = await compat.client.callTool({ name, arguments: args })
      assert.ok(!result.isError, `${name}: ${JSON.stringify(result)}`)
      assert.match(result.content[0].text, wanted, name)
    }
    await assert.rejects(compat.client.callTool({ name: 'wiki_generate', arguments: {} }), /needs a language model/)
  } finally {
    await compat.client.close()
  }
})

const pid = transport.pid
await client.close()
await test('the server ends with its input', async () => {
  for (let i = 0; i < 200; i++) {
    try {
      process.kill(pid, 0)
    } catch {
      return
    }
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  assert.fail('it still runs')
})
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed ? 1 : 0)
