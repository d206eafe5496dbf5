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
