// Watches over real sockets: how they begin, what a line looks like, how they end, and that nothing of them stays (wire §1.12).

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { createInterface } from 'node:readline'
import { after, before, describe, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'
import { eventually, group, openBare, openWire, type Wire } from '../support/wire.ts'

const teams = `${group}/teams`
const json = { 'content-type': 'application/json' }

describe('watches', { timeout: 120_000 }, () => {
  let server: Server
  let wire: Wire
  before(async () => {
    server = await startServer({ storage: 'memory' })
    wire = openWire(server)
  })
  after(() => server.stop())
  let count = 0
  const make = async () => {
    const name = `w${++count}`
    assert.equal(
      (await wire(teams, { method: 'POST', headers: json, body: JSON.stringify({ metadata: { name } }) })).code,
      201,
    )
    return name
  }
  const newest = async () => (await wire(teams)).json.metadata.resourceVersion as string

  /** The answer as soon as its headers are there, and its lines as they come. */
  async function watch(query: string, headers: { [name: string]: string } = {}, path = teams) {
    const authorization = `Bearer ${server.adminKey}`
    const call = httpsRequest(`${server.https}${path}?${query}`, {
      ca: server.ca,
      servername: 'localhost',
      agent: false,
      headers: { authorization, ...headers },
    })
    call.end()
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    const lines = createInterface({ input: response })[Symbol.asyncIterator]()
    // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came
    const next = async (): Promise<any> => {
      const { value, done } = await lines.next()
      return done ? undefined : JSON.parse(value)
    }
    return { response, next, close: () => response.destroy() }
  }
  const open = async () =>
    Number(/^apiserver_longrunning_requests\{verb="WATCH"\} (\d+)$/m.exec((await wire('/metrics')).text)?.[1])
  const untilOpen = async (wanted: number) => {
    let found = Number.NaN
    const isOpen = async () => {
      found = await open()
      return found === wanted
    }
    await eventually(`${wanted} watches are open`, isOpen).catch(error => {
      throw new Error(`${error.message}, but ${found}`)
    })
  }

  test('headers are sent immediately, before any event, and never compressed', async () => {
    const { response, next, close } = await watch(`watch=true&resourceVersion=${await newest()}`, {
      'accept-encoding': 'gzip',
    })
    assert.equal(response.statusCode, 200)
    assert.equal(response.headers['content-type'], 'application/json')
    assert.equal(response.headers['transfer-encoding'], 'chunked')
    assert.equal(response.headers['content-encoding'], undefined)
    const name = await make()
    const event = await next()
    assert.deepEqual([event.type, event.object.kind, event.object.metadata.name], ['ADDED', 'Team', name])
    close()
  })

  test('each event is one line, never indented, also for curl', async () => {
    const from = await newest()
    const name = await make()
    const { response } = await watch(`watch=1&resourceVersion=${from}&timeoutSeconds=1&pretty=true`, {
      'user-agent': 'curl/8',
    })
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    assert.match(text, new RegExp(`^\\{"type":"ADDED","object":\\{[^\\n]*"name":"${name}"[^\\n]*\\}\\}\\n$`))
  })

  test('timeoutSeconds ends it cleanly, with a bookmark if allowed', async () => {
    const [plain, marked] = await Promise.all([
      watch(`watch=true&resourceVersion=${await newest()}&timeoutSeconds=1`),
      watch(`watch=true&resourceVersion=${await newest()}&timeoutSeconds=1&allowWatchBookmarks=true`),
    ])
    assert.equal(await plain.next(), undefined)
    const last = await marked.next()
    assert.deepEqual(last, {
      type: 'BOOKMARK',
      object: { kind: 'Team', apiVersion: 'management.platform.sh/v1', metadata: { resourceVersion: await newest() } },
    })
    assert.equal(await marked.next(), undefined)
    assert.ok(plain.response.complete && marked.response.complete)
  })

  test('every chunk has its declared length, and the connection is reused; HTTP/1.0 gets bare lines', async () => {
    await make()
    const bare = await openBare(server.http)
    const head = `Host: localhost\r\nAuthorization: Bearer ${server.adminKey}\r\n\r\n`
    bare.socket.write(`GET ${teams}?watch=1&allowWatchBookmarks=1&timeoutSeconds=1 HTTP/1.1\r\n${head}`)
    const first = await bare.until('\r\n0\r\n\r\n')
    let rest = first.slice(first.indexOf('\r\n\r\n') + 4)
    const lines: string[] = []
    for (let size = -1; size !== 0; ) {
      size = Number.parseInt(rest, 16)
      const start = rest.indexOf('\r\n') + 2
      lines.push(
        ...rest
          .slice(start, start + size)
          .split('\n')
          .filter(Boolean),
      )
      assert.equal(rest.slice(start + size, start + size + 2), '\r\n', 'a chunk ends where it says')
      rest = rest.slice(start + size + 2)
    }
    assert.equal(rest, '')
    assert.deepEqual([...new Set(lines.map(line => JSON.parse(line).type))], ['ADDED', 'BOOKMARK'])
    bare.socket.write(`GET /livez HTTP/1.1\r\n${head}`)
    assert.match((await bare.until('\r\n\r\nok')).slice(first.length), /^HTTP\/1\.1 200/)
    bare.socket.destroy()
    const old = await openBare(server.http)
    old.socket.write(`GET ${teams}?watch=1&timeoutSeconds=1 HTTP/1.0\r\n${head}`)
    const [, body = ''] = (await old.ended()).split('\r\n\r\n')
    for (const line of body.split('\n').filter(Boolean)) assert.equal(JSON.parse(line).type, 'ADDED')
  })

  test('as Table the columns are sent once; as PartialObjectMetadata no spec is sent', async () => {
    const as = (word: string) => ({ accept: `application/json;as=${word};v=v1;g=meta.k8s.io` })
    const from = await newest()
    const table = await watch(`watch=true&resourceVersion=${from}`, as('Table'))
    const bare = await watch(`watch=true&resourceVersion=${from}`, as('PartialObjectMetadata'))
    const [one, other] = [await make(), await make()]
    const [first, second] = [await table.next(), await table.next()]
    assert.equal(first.object.kind, 'Table')
    assert.equal(first.object.columnDefinitions[0].name, 'Name')
    assert.equal(first.object.rows[0].cells[0], one)
    assert.equal(second.object.columnDefinitions, null)
    assert.equal(second.object.rows[0].cells[0], other)
    const { object } = await bare.next()
    assert.deepEqual([object.kind, object.metadata.name, object.spec], ['PartialObjectMetadata', one, undefined])
    table.close()
    bare.close()
  })

  test('as Table the end of the initial list is a row with its annotation', async () => {
    const query =
      'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dnone'
    const { next, close } = await watch(query, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' })
    const { type, object } = await next()
    assert.equal(type, 'BOOKMARK')
    assert.equal(object.kind, 'Table')
    assert.deepEqual(object.rows[0].object.metadata.annotations, { 'k8s.io/initial-events-end': 'true' })
    close()
  })

  test('the old /watch/ paths work, for a collection and for one object; ?watch on an object is ignored', async () => {
    const name = await make()
    const all = await watch('', {}, `${group}/watch/teams`)
    assert.equal((await all.next()).type, 'ADDED')
    all.close()
    const one = await watch('', {}, `${group}/watch/teams/${name}`)
    assert.equal((await one.next()).object.metadata.name, name)
    one.close()
    assert.equal((await wire(`${teams}/${name}?watch=true`)).json.kind, 'Team')
  })

  test('a watch of one object by its path does not affect other requests', async () => {
    const [one, other] = [await make(), await make()]
    const bare = await openBare(server.http) // no query at all, not even an empty one
    const path = `${group}/watch/teams/${one}`
    bare.socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.adminKey}\r\n\r\n`)
    await bare.until(`"name":"${one}"`)
    bare.socket.destroy()
    const names = (await wire(teams)).json.items.map((item: { metadata: { name: string } }) => item.metadata.name)
    assert.ok(names.includes(one) && names.includes(other))
  })

  test('a watch of one object by its path shows only that object, with any selector', async () => {
    const [one, other] = [await make(), await make()]
    for (const [selector, wanted] of [
      ['metadata.name!=zzz', [one]],
      [`metadata.name=${other}`, []],
      [`metadata.name!=${one}`, []],
    ] as const) {
      const query = `fieldSelector=${encodeURIComponent(selector)}&timeoutSeconds=1`
      const { response } = await watch(query, {}, `${group}/watch/teams/${one}`)
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      const names = [...text.matchAll(/"name":"(\w+)"/g)].map(match => match[1])
      assert.deepEqual(names, wanted, selector)
    }
    assert.equal((await wire(`${group}/watch/teams/${one}?fieldSelector=metadata.name!%3Dzzz%5C`)).code, 400)
  })

  test('timeoutSeconds above the timer limit, 0 and negative values do not end it immediately', async () => {
    const opened = await Promise.all(
      ['3000000', '999999999999999', '0', '-1'].map(async seconds =>
        watch(`watch=true&resourceVersion=${await newest()}&timeoutSeconds=${seconds}`),
      ),
    )
    const name = await make()
    for (const { next, close } of opened) {
      assert.equal((await next())?.object.metadata.name, name)
      close()
    }
  })

  test('application/json;stream=watch is accepted; unsupported formats are rejected before the start', async () => {
    const { response, close } = await watch('watch=true', { accept: 'application/json;stream=watch' })
    assert.equal(response.statusCode, 200)
    close()
    for (const [query, code] of [
      ['labelSelector=a%20b', 400],
      ['resourceVersion=abc', 400],
      ['sendInitialEvents=true', 422],
    ] as const)
      assert.equal((await wire(`${teams}?watch=true&${query}`)).code, code)
  })

  test('aborted watches leave nothing behind, over HTTP/1.1 and HTTP/2', async () => {
    await untilOpen(0)
    const opened = await Promise.all(Array.from({ length: 20 }, () => watch('watch=true')))
    const session = connectHttp2(server.https, { ca: server.ca, servername: 'localhost' })
    const streams = Array.from({ length: 20 }, () =>
      session.request({ ':path': `${teams}?watch=true`, authorization: `Bearer ${server.adminKey}` }),
    )
    for (const stream of streams) stream.on('error', () => {})
    await Promise.all(streams.map(stream => once(stream, 'response')))
    try {
      assert.equal(await open(), 40)
      for (const { close } of opened) close()
      for (const stream of streams.slice(10)) stream.close()
      await untilOpen(10)
    } finally {
      session.destroy()
    }
    await untilOpen(0)
  })

  test('a client that does not read delays nobody, and is cleaned up when it disconnects', async () => {
    const slow = await openBare(server.http)
    slow.socket.pause()
    slow.socket.write(
      `GET ${teams}?watch=true HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.adminKey}\r\n\r\n`,
    )
    await untilOpen(1)
    const quick = await watch(`watch=true&resourceVersion=${await newest()}`)
    const annotations = { big: 'x'.repeat(200_000) }
    const changes = 40
    await make()
    const path = `${teams}/w${count}`
    const patch = { method: 'PATCH', headers: { 'content-type': 'application/merge-patch+json' } }
    for (let n = 0; n < changes; n++)
      assert.equal(
        (
          await wire(path, {
            ...patch,
            body: JSON.stringify({ metadata: { annotations: { ...annotations, n: String(n) } } }),
          })
        ).code,
        200,
      )
    let last: string | undefined
    while (last !== String(changes - 1)) last = (await quick.next()).object.metadata.annotations?.n
    quick.close()
    await untilOpen(1)
    slow.socket.destroy()
    await untilOpen(0)
  })
})
