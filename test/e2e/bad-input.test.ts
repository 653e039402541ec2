// Invalid input against one running server: each gets its exact Status at low cost, and the process keeps running (issue 2, Bad input).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { slowness } from '../support/cpu-time.ts'
import { type Server, startServer } from '../support/server.ts'
import { base, eventually, group, openBare, openWire, type Reply, type Sent, type Wire } from '../support/wire.ts'

const teams = `${group}/teams`
const secrets = `${group}/namespaces/default/sharedsecrets`
const mebibyte = 1024 * 1024
/** Seconds of CPU on the reference machine of cpu-time.ts: the promise. */
const budget = 0.1
const asJson = { 'content-type': 'application/json' }
const asYaml = { 'content-type': 'application/yaml' }
const asPatch = { 'content-type': 'application/json-patch+json' }
const asMerge = { 'content-type': 'application/merge-patch+json' }
const asApply = { 'content-type': 'application/apply-patch+yaml' }

const unrecognized = (problem: string) =>
  new RegExp(`^the object provided is unrecognized \\(must be of type Team\\): .*${problem}`)

type Expected = { readonly code: number; readonly reason?: string; readonly message?: RegExp }

describe('invalid input', { timeout: 600_000 }, () => {
  let server: Server
  let wire: Wire
  before(async () => {
    server = await startServer({ storage: 'memory' })
    wire = openWire(server, 'http')
    const body = JSON.stringify({ metadata: { name: 'there', annotations: { a: 'b' } }, spec: { users: ['u'] } })
    assert.equal((await wire(teams, { method: 'POST', headers: asJson, body })).code, 201)
    // Warm up, because the first run includes compilation.
    for (const headers of [asJson, asYaml]) await wire(`${teams}?dryRun=All`, { method: 'POST', headers, body })
    await cpu()
  })
  after(() => server.stop())

  /** Seconds of CPU the server has used so far. */
  const cpu = async () => Number(/^process_cpu_seconds_total (\S+)$/m.exec((await wire('/metrics')).text)?.[1])

  /** The answer, made sure that it costs no more than it may. */
  async function measured(path: string, sent: Sent): Promise<Reply> {
    let used = Number.POSITIVE_INFINITY
    let reply: Reply | undefined
    let slower = 1
    // The first time code is compiled and garbage collected on the way; that is not what is measured.
    for (let attempt = 0; attempt < 20 && used >= budget * slower; attempt++) {
      const before = await cpu()
      reply = await wire(path, sent)
      used = Math.min(used, (await cpu()) - before)
      if (used >= budget) slower = Math.max(slower, slowness())
    }
    assert.ok(reply)
    const what = `${sent.method ?? 'GET'} ${path.slice(-40)} ${JSON.stringify(sent.headers ?? {})} ${String(sent.body).slice(0, 60)}`
    assert.ok(
      used < budget * slower,
      `${Math.round(used * 1000)} ms of CPU, ${slower.toFixed(1)} times slower: ${what}`,
    )
    return reply
  }

  async function refuses(path: string, sent: Sent, expected: Expected): Promise<Reply> {
    const reply = await measured(path, sent)
    assert.equal(reply.code, expected.code, `${reply.text.slice(0, 300)}`)
    assert.equal(reply.json.kind, 'Status')
    if (expected.reason) assert.equal(reply.json.reason, expected.reason)
    if (expected.message) assert.match(reply.json.message, expected.message)
    return reply
  }
  const post = (body: string | Uint8Array, headers: { [name: string]: string } = asJson): Sent => ({
    method: 'POST',
    headers,
    body,
  })
  const patch = (body: string, headers: { [name: string]: string } = asPatch): Sent => ({
    method: 'PATCH',
    headers,
    body,
  })
  const bad = (message: RegExp): Expected => ({ code: 400, reason: 'BadRequest', message })

  test('malformed JSON is reported with its position, and not repeated', async () => {
    for (const body of [
      '{',
      '{"a":}',
      '{"a":1,}',
      "{'a':1}",
      '{"a":01}',
      '{"a":"\u0001"}',
      'nope',
      '{"a":1} x',
      '"\\x"',
      '{"s3cr3t',
    ])
      assert.equal(
        (await refuses(teams, post(body), bad(unrecognized('line 1, column \\d+: ')))).text.includes('s3cr3t'),
        false,
      )
    await refuses(
      teams,
      post(new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d])),
      bad(unrecognized('the text is not valid UTF-8')),
    )
    await refuses(teams, post(''), bad(unrecognized('the body is empty')))
    for (const body of ['[]', '"text"', '1', 'true', 'null']) await refuses(teams, post(body), bad(unrecognized('')))
  })

  test('malformed YAML, several documents, custom tags', async () => {
    for (const [body, problem] of [
      ['a: [', 'line \\d+, column \\d+: '],
      ['a:\n\tb: 1', 'line 2, column \\d+: '],
      ['a: b: c', 'line 1, column \\d+: '],
      ['a: *none', 'an alias must refer to an anchor'],
      ['a: !!js/function "x"', 'custom tags are not supported'],
      ['a: 1\n---\nb: 2', 'expected one document'],
      ['? [a]\n: b', 'expected a key that is a string'],
      ['%YAML 1.2\n'.repeat(50), 'line \\d+'],
    ] as const)
      await refuses(teams, post(body, asYaml), bad(unrecognized(problem)))
  })

  test('alias bombs', async () => {
    const levels = Array.from(
      { length: 12 },
      (_, at) => `l${at + 1}: &l${at + 1} [${Array(10).fill(`*l${at}`).join(', ')}]`,
    )
    const laughs = `l0: &l0 [lol, lol, lol]\n${levels.join('\n')}\n`
    await refuses(teams, post(laughs, asYaml), { code: 413, message: /more than 50000 values/ })
    const many = `a: &a ${'x'.repeat(10_000)}\nb: [${Array(2000).fill('*a').join(', ')}]\n`
    await refuses(teams, post(many, asYaml), bad(unrecognized('the aliases expand to more than 3 MiB')))
    await refuses(teams, post('a: &a [*a]', asYaml), bad(unrecognized('an alias may not be inside its own anchor')))
    await refuses(`${teams}/there?fieldManager=a`, patch(laughs, asApply), { code: 413 })
  })

  test('nesting', async () => {
    for (const depth of [101, 100_000]) {
      await refuses(teams, post('['.repeat(depth) + ']'.repeat(depth)), bad(unrecognized('nested deeper than 100')))
      await refuses(
        teams,
        post(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`),
        bad(unrecognized('nested deeper than 100')),
      )
      await refuses(teams, post('- '.repeat(depth), asYaml), bad(unrecognized('nested deeper than 100')))
    }
  })

  test('3 MiB of brackets, for every content type and endpoint', async () => {
    for (const unit of ['[', '{"a":', '- ', '[[],', '{', '"', '&a ', '? ', '\n', '#', 'a: ', '{}']) {
      const body = unit.repeat(Math.floor((3 * mebibyte) / unit.length))
      for (const headers of [asJson, asYaml])
        await refuses(teams, post(body, headers), { code: 400, reason: 'BadRequest' })
    }
    const brackets = '['.repeat(3 * mebibyte)
    for (const headers of [asPatch, asMerge, asApply])
      await refuses(`${teams}/there?fieldManager=a`, patch(brackets, headers), { code: 400, reason: 'BadRequest' })
    await refuses(
      `${teams}/there`,
      { method: 'DELETE', headers: asJson, body: brackets },
      { code: 400, reason: 'BadRequest' },
    )
  })

  test('wrong types, all reported', async () => {
    const body = JSON.stringify({
      metadata: { name: 'x' },
      spec: { users: 'string', displayName: [], access: [{ verbs: 'get' }], owner: 7 },
    })
    const reply = await refuses(teams, post(body), {
      code: 422,
      reason: 'Invalid',
      message: /spec\.users in body must be of type array: "string"/,
    })
    assert.equal(reply.json.details.causes.length, 4)
    for (const metadata of [
      { name: 7 },
      { labels: [] },
      { labels: { a: {} } },
      { finalizers: 'x' },
      { ownerReferences: [7] },
      'text',
      7,
    ])
      await refuses(
        teams,
        post(JSON.stringify({ metadata })),
        bad(/^Team in version "v1" cannot be handled as a Team: json: cannot unmarshal /),
      )
    await refuses(teams, post('{"kind":7,"metadata":{"name":"x"}}'), { code: 422 })
    await refuses(teams, post('{"apiVersion":{},"metadata":{"name":"x"}}'), { code: 400 })
  })

  test('25,000 unknown fields and 40,000 duplicate keys', async () => {
    const fields = Array.from({ length: 25_000 }, (_, at) => `"f${at}":1`).join()
    const unknown = `{"metadata":{"name":"x"},"spec":{${fields}}}`
    const reply = await refuses(
      `${teams}?fieldValidation=Strict`,
      post(unknown),
      bad(/strict decoding error: unknown field "spec\.f0"/),
    )
    assert.ok(reply.text.length < 64 * 1024, `the answer is ${reply.text.length} characters long`)
    const twice = `{"metadata":{"name":"x"},"spec":{${'"displayName":"a",'.repeat(40_000)}"displayName":"b"}}`
    await refuses(`${teams}?fieldValidation=Strict`, post(twice), bad(/duplicate field "spec\.displayName"/))
    const warned = await measured(`${teams}?dryRun=All`, post(unknown))
    assert.equal(warned.code, 201)
    assert.ok(warned.warnings.join('').length < 8192)
  })

  test('__proto__ is an ordinary unknown field, and a harmless key (D4)', async () => {
    const strict = `${teams}?fieldValidation=Strict`
    await refuses(
      strict,
      post('{"__proto__":{"polluted":1},"metadata":{"name":"x"}}'),
      bad(/unknown field "__proto__"$/),
    )
    await refuses(
      strict,
      post('{"metadata":{"name":"x","constructor":{"prototype":{}}}}'),
      bad(/unknown field "metadata\.constructor"$/),
    )
    await refuses(`${teams}/there`, patch('[{"op":"add","path":"/__proto__/polluted","value":1}]'), { code: 422 })
    await refuses(`${teams}/there?fieldValidation=Strict`, patch('{"__proto__":{"polluted":1}}', asMerge), {
      code: 422,
    })
    const made = await wire(
      `${secrets}?dryRun=All`,
      post('{"metadata":{"name":"p"},"spec":{"data":{"__proto__":"YQ==","constructor":"Yg=="}}}'),
    )
    assert.equal(made.code, 201)
    assert.match(made.text, /"data":\{"__proto__":"YQ==","constructor":"Yg=="\}/)
  })

  test('integers beyond 2^53 are refused, not rounded (D4)', async () => {
    for (const number of ['9007199254740993', '-9007199254740993', '123456789012345678901234567890', '1e400'])
      for (const headers of [asJson, asYaml])
        await refuses(
          teams,
          post(`{"metadata":{"name":"x","generation":${number}}}`, headers),
          bad(unrecognized('(integers beyond 2\\^53|this number is too large)')),
        )
    await refuses(`${teams}/there`, patch('[{"op":"add","path":"/spec/x","value":9007199254740993}]'), { code: 400 })
  })

  test('invalid names and labels', async () => {
    const send = (metadata: object) => post(JSON.stringify({ metadata }))
    for (const name of [
      'UPPER',
      'a_b',
      '-a',
      'a-',
      'a..b',
      '.',
      '..',
      'a/b',
      'a%b',
      'ü',
      'x'.repeat(254),
      '\u0000',
      ' ',
    ])
      await refuses(teams, send({ name }), { code: 422, reason: 'Invalid', message: /metadata\.name: Invalid value/ })
    for (const labels of [
      { 'a b': '' },
      { a: 'b c' },
      { '/a': '' },
      { 'a/': '' },
      { 'a/b/c': '' },
      { ['x'.repeat(64)]: '' },
      { a: 'x'.repeat(64) },
      { '': '' },
    ])
      await refuses(teams, send({ name: 'x', labels }), {
        code: 422,
        reason: 'Invalid',
        message: /metadata\.labels: Invalid value/,
      })
    const huge = await refuses(teams, send({ name: 'a'.repeat(mebibyte) }), { code: 422 })
    assert.ok(huge.text.length < 9 * mebibyte, `the answer is ${huge.text.length} characters long`)
    const labels = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`bad key ${at}`, '!']))
    await refuses(teams, send({ name: 'x', labels }), { code: 422 })
    await refuses(teams, send({ name: 'x', labels: { [`${'a-'.repeat(100_000)}!`]: '' } }), { code: 422 })
  })

  test('wrong content types and oversized bodies', async () => {
    for (const type of [
      'text/plain',
      'multipart/form-data; boundary=x',
      'application/vnd.kubernetes.protobuf',
      'x',
      '/',
    ])
      await refuses(teams, post('{}', { 'content-type': type }), { code: 415, reason: 'UnsupportedMediaType' })
    const large = Buffer.alloc(3 * mebibyte + 1, 0x20)
    for (const sent of [
      post(large),
      { method: 'PUT', headers: asJson, body: large },
      { method: 'PATCH', headers: asMerge, body: large },
    ])
      await refuses(sent.method === 'POST' ? teams : `${teams}/there`, sent, {
        code: 413,
        reason: 'RequestEntityTooLarge',
        message: /^Request entity too large: limit is 3145728$/,
      })
    await refuses(teams, post(gzipSync('{}'), { ...asJson, 'content-encoding': 'gzip' }), bad(unrecognized('')))
  })

  test('JSON Patch: too many operations, copy chains, work without end, bad pointers', async () => {
    const operations = (count: number, one: object) => JSON.stringify(Array(count).fill(one))
    await refuses(`${teams}/there`, patch(operations(10_001, { op: 'test', path: '/kind', value: 'Team' })), {
      code: 413,
      reason: 'RequestEntityTooLarge',
      message: /^The allowed maximum operations in a JSON patch is 10000, got 10001$/,
    })
    await refuses(`${teams}/there`, patch(operations(1, { op: 'test', path: '/a'.repeat(60_001), value: 1 })), {
      code: 413,
      reason: 'RequestEntityTooLarge',
      message: /^The allowed maximum of path segments in a JSON patch is 60000$/,
    })
    const doubling = Array.from({ length: 40 }, () => ({ op: 'copy', from: '/spec', path: '/spec/users' }))
    for (const body of [
      JSON.stringify(doubling),
      JSON.stringify([
        { op: 'add', path: '/spec/x', value: ['y'] },
        ...Array.from({ length: 40 }, () => ({ op: 'copy', from: '/spec/x', path: '/spec/x/-' })),
      ]),
      operations(10_000, { op: 'add', path: '/spec/users/0', value: 'x'.repeat(100) }),
      operations(10_000, { op: 'copy', from: '/metadata', path: '/metadata/annotations' }),
      JSON.stringify([{ op: 'move', from: '/spec', path: '/spec/users' }]),
      JSON.stringify([{ op: 'add', path: 'no-slash', value: 1 }]),
      JSON.stringify([{ op: 'add', path: '/~2', value: 1 }]),
      JSON.stringify([{ op: 'add', path: `/${'a/'.repeat(50_000)}`, value: 1 }]),
      JSON.stringify([{ op: 'add', path: '/spec/users/99999999999', value: 1 }]),
      JSON.stringify([{ op: 'add' }]),
    ]) {
      await refuses(`${teams}/there`, patch(body), { code: 422, reason: 'Invalid' })
    }
    for (const body of ['{}', '"x"', '7', '[null]', '[1]'])
      await refuses(`${teams}/there`, patch(body), bad(/^error decoding patch: /))
    for (const body of ['[]', '"x"', '7', 'null']) await refuses(`${teams}/there`, patch(body, asMerge), { code: 400 })
  })

  test('invalid query parameters', async () => {
    for (const query of [
      'limit=abc',
      'limit=1e9',
      'limit=99999999999999999999',
      'watch=1&timeoutSeconds=x',
      'resourceVersion=abc',
      'resourceVersion=-1',
      'labelSelector=%28%28%28',
      'labelSelector=a%20b',
      `labelSelector=${'a,'.repeat(5000)}%21`,
      `labelSelector=${'%21'.repeat(5000)}`,
      'fieldSelector=spec.x%3D1',
      'fieldSelector=%5C',
      'timeout=abc',
      'timeout=1',
      'timeout=-1s',
    ])
      await refuses(`${teams}?${query}`, {}, { code: 400, reason: 'BadRequest' })
    for (const query of [
      'resourceVersionMatch=Exact',
      'resourceVersion=0&resourceVersionMatch=Exact',
      'resourceVersion=1&resourceVersionMatch=Foo',
      'sendInitialEvents=true',
      'watch=1&sendInitialEvents=true',
    ])
      await refuses(`${teams}?${query}`, {}, { code: 422, reason: 'Invalid' })
    for (const query of ['foo=bar', '%zz', '&&&', '=', 'limit=', 'continue=', '\u0000'.replace('\u0000', '%00=%00')])
      assert.equal((await wire(`${teams}?${query}`)).code, 200, query)
    await refuses(`${teams}/there?gracePeriodSeconds=x`, { method: 'DELETE' }, { code: 400 })
    await refuses(`${teams}/there?gracePeriodSeconds=-1`, { method: 'DELETE' }, { code: 422 })
  })

  test('expired, foreign and invented continue tokens', async () => {
    const invented = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    for (const token of [
      'x',
      '%00',
      'x'.repeat(10_000),
      invented({}),
      invented({ v: 'meta.k8s.io/v1', rv: 'x', start: [] }),
      invented({ v: 'meta.k8s.io/v1', rv: 1e300, kind: 'teams.management.platform.sh', start: ['', 'a'] }),
      Buffer.from('['.repeat(1000)).toString('base64url'),
    ])
      await refuses(`${teams}?continue=${token}`, {}, bad(/^invalid continue token: continue key is not valid/))
    const position = (rv: number) =>
      invented({ v: 'meta.k8s.io/v1', rv, kind: 'teams.management.platform.sh', start: ['', 'a'] })
    const future = await wire(`${teams}?continue=${position(999_999_999)}`)
    assert.ok([400, 410, 504].includes(future.code), `${future.code}`)
    assert.equal(future.json.kind, 'Status')
  })

  test('confusing paths and headers', async () => {
    for (const path of [
      '//',
      '/..',
      `${teams}/..`,
      `${teams}/%2e%2e`,
      `${base}/apis/../metrics`,
      `${teams}/${'a'.repeat(10_000)}`,
      `${teams}/%00`,
      '/%',
    ])
      assert.ok([404, 422].includes((await wire(path)).code), path)
    const accept = 'application/json;q=0.'.repeat(500)
    assert.ok([200, 406].includes((await wire(teams, { headers: { accept } })).code))
    assert.equal((await wire(teams, { headers: { authorization: `Bearer ${'x'.repeat(8000)}` }, key: '' })).code, 401)
    assert.equal((await wire(teams, { method: 'BREW' }).catch(() => ({ code: 400 }))).code, 400)
  })

  describe('on the bare socket', () => {
    const head = (line: string, ...more: string[]) =>
      [line, 'Host: localhost', `Authorization: Bearer ${server.adminKey}`, ...more, '', ''].join('\r\n')

    const shows = (line: string) =>
      eventually(line, async () => (await wire('/metrics')).text.split('\n').includes(line))

    test('input that is not HTTP gets 400, and the connection closes', async () => {
      for (const bytes of [
        'hello\r\n\r\n',
        'GET / HTTP/9.9\r\n\r\n',
        head('GET / HTTP/1.1', 'Bad Header: x'),
        head(`POST ${teams} HTTP/1.1`, 'Content-Length: 5', 'Transfer-Encoding: chunked'),
        head(`POST ${teams} HTTP/1.1`, 'Content-Length: abc'),
        `GET ${teams} HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(100_000)}`,
      ]) {
        const bare = await openBare(server.http)
        bare.socket.write(bytes)
        assert.match(await bare.ended(), /^HTTP\/1\.1 4\d\d /)
      }
      const tls = await openBare(server.https)
      tls.socket.write('GET / HTTP/1.1\r\n\r\n')
      await tls.ended()
    })

    test('aborted partial requests leave nothing in flight', async () => {
      const chunked = head(`POST ${teams} HTTP/1.1`, 'Content-Type: application/json', 'Transfer-Encoding: chunked')
      const halves = [
        'GET /',
        `${head(`POST ${teams} HTTP/1.1`, 'Content-Type: application/json', 'Content-Length: 100')}{"metadata":`,
        head(`POST ${teams} HTTP/1.1`, 'Content-Type: application/json', 'Content-Length: 100'),
        `${chunked}5\r\n{"met`,
        `${chunked}zz\r\n`,
        `${head(`PATCH ${teams}/there HTTP/1.1`, 'Content-Type: application/merge-patch+json', 'Content-Length: 10')}{`,
        `${head(`DELETE ${teams}/there HTTP/1.1`, 'Content-Type: application/json', 'Content-Length: 10')}{`,
      ]
      for (const how of ['end', 'destroy'] as const) {
        const open = await Promise.all(halves.map(() => openBare(server.http)))
        for (const [at, { socket }] of open.entries()) socket.write(halves[at] ?? '')
        await wire(teams) // by then the halves have arrived
        for (const { socket } of open) socket[how]()
        await Promise.all(open.map(bare => bare.ended()))
      }
      await shows('apiserver_current_inflight_requests{request_kind="mutating"} 0')
      assert.equal((await wire(`${teams}/there`)).code, 200)
    })

    test('100 aborted watches leave nothing behind', async () => {
      const open = await Promise.all(Array.from({ length: 100 }, () => openBare(server.http)))
      for (const { socket } of open) socket.write(head(`GET ${teams}?watch=true HTTP/1.1`))
      await Promise.all(open.map(bare => bare.until('"ADDED"')))
      for (const { socket } of open) socket.destroy()
      await Promise.all(open.map(bare => bare.ended()))
      await shows('apiserver_longrunning_requests{verb="WATCH"} 0')
    })
  })

  test('afterwards the server is healthy, and has logged no internal error', async () => {
    assert.equal((await wire('/readyz')).text, 'ok')
    const made = await wire(teams, post('{"metadata":{"name":"after"}}'))
    assert.equal(made.code, 201)
    assert.equal((await wire(`${teams}/there`)).json.spec.users[0], 'u')
    const failures = server
      .output()
      .split('\n')
      .filter(line => line.includes('"level":50'))
    assert.deepEqual(failures, [])
    assert.equal(({} as { polluted?: unknown }).polluted, undefined)
  })
})
