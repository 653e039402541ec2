// Upstreams of bare sockets: reused, broken and retired connections, and valid and ambiguous responses.

import assert from 'node:assert/strict'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { eventually } from '../../test/support/wire.ts'
import { connectorTo } from './connector.ts'
import { type Call, openUpstream, type Upstream } from './upstream.ts'

const closing: (() => void)[] = []
after(() => {
  for (const close of closing) close()
})

type Answer = (socket: Socket, count: number) => void

/** `answer` gets every request with its number on the connection. */
async function serve(answer: Answer) {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    let count = 0
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', () => answer(socket, ++count))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const upstream = openUpstream({ server: url, connect: connectorTo({ server: url, insecure: false }, undefined) })
  closing.push(() => {
    upstream.destroy()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { upstream, sockets }
}

type State = 'open' | 'whole' | 'failed' | 'stale'
type Heard = {
  call: Call
  status: number
  headers: readonly string[]
  body: string
  state: State
  code?: string | undefined
  done: Promise<State>
}

function get(upstream: Upstream, { method = 'GET', isAlone = false, pauses = false } = {}): Heard {
  const heard = { status: 0, headers: [], body: '', state: 'open' } as unknown as Heard
  heard.done = new Promise(resolve => {
    const end = (state: State) => {
      assert.equal(heard.state, 'open', 'it ends once')
      heard.state = state
      resolve(state)
    }
    heard.call = upstream.send(
      { method, path: '/', headers: ['Host', 'x'], connectWithin: 10_000, isAlone },
      {
        head({ status, rawHeaders }) {
          Object.assign(heard, { status, headers: rawHeaders })
          if (pauses) heard.call.pause()
        },
        data: chunk => {
          heard.body += chunk.toString('latin1')
        },
        end: () => end('whole'),
        failed: (error, { isStale }) => {
          heard.code = (error as NodeJS.ErrnoException).code
          end(isStale ? 'stale' : 'failed')
        },
      },
    )
  })
  return heard
}

const small = 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx'
const lines = (...all: string[]) => all.join('\r\n')

test('requests reuse a connection, one at a time; an exclusive request opens and closes its own', async () => {
  const { upstream, sockets } = await serve(socket => socket.write(small))
  for (let round = 0; round < 3; round++) {
    assert.equal(await get(upstream).done, 'whole')
    await new Promise(setImmediate) // undici frees the connection one turn later
  }
  assert.equal(sockets.size, 1)
  assert.deepEqual(await Promise.all([get(upstream).done, get(upstream).done]), ['whole', 'whole'])
  assert.equal(sockets.size, 2)
  const [kept] = sockets
  assert.equal(await get(upstream, { isAlone: true }).done, 'whole')
  await eventually('its connection is closed', async () => sockets.size === 2)
  assert.ok(kept && sockets.has(kept))
})

test('a response without a length is whole if the server ends it, and broken if it resets the connection', async () => {
  const { upstream, sockets } = await serve(socket => socket.write('HTTP/1.1 200 OK\r\n\r\nsome of it'))
  const ways: [(socket: Socket) => void, State][] = [
    [socket => socket.end(' and all'), 'whole'],
    [socket => socket.resetAndDestroy(), 'failed'],
  ]
  for (const [finish, state] of ways) {
    const heard = get(upstream)
    await eventually('some of it is here', async () => heard.body === 'some of it')
    for (const socket of sockets) finish(socket)
    assert.equal(await heard.done, state)
  }
})

test('a kept connection that dies without a response is stale; after renew only new ones are used', async () => {
  let isDead = false
  const { upstream, sockets } = await serve((socket, count) => {
    if (isDead && count > 1) socket.destroy()
    else setImmediate(() => socket.write(small))
  })
  await Promise.all([get(upstream).done, get(upstream).done, get(upstream).done])
  assert.equal(sockets.size, 3)
  isDead = true
  assert.equal(await get(upstream).done, 'stale')
  upstream.renew()
  assert.equal(await get(upstream).done, 'whole')
  await eventually('the new one is left', async () => sockets.size === 1)
})

test('a new connection that dies without a response is not stale', async () => {
  const { upstream } = await serve(socket => socket.destroy())
  for (const isAlone of [false, true]) assert.equal(await get(upstream, { isAlone }).done, 'failed')
})

test('a dropped request closes its connection, and its handler gets no more calls', async () => {
  const { upstream, sockets } = await serve(socket => socket.write('HTTP/1.1 200 OK\r\n\r\nsome'))
  for (const isAlone of [true, false]) {
    const heard = get(upstream, { isAlone })
    await eventually('it has begun', async () => heard.body === 'some')
    const [used] = sockets
    heard.call.drop()
    await eventually('its connection is gone', async () => used !== undefined && !sockets.has(used))
    assert.equal(heard.state, 'open')
    if (isAlone) assert.equal(sockets.size, 0)
  }
})

test('a request that is dropped before its connection is open is not sent', async () => {
  let received = 0
  const { upstream, sockets } = await serve(() => received++)
  for (const isAlone of [false, true]) get(upstream, { isAlone }).call.drop()
  await eventually('no connection is left', async () => sockets.size === 0)
  assert.equal(received, 0)
})

test('retiring closes idle connections immediately and the others after their request', async () => {
  const held: Socket[] = []
  const { upstream, sockets } = await serve(socket => (held.length ? socket.write(small) : held.push(socket)))
  const slow = get(upstream)
  await eventually('the request is there', async () => held.length === 1)
  assert.equal(await get(upstream).done, 'whole')
  assert.equal(sockets.size, 2)
  upstream.retire()
  await eventually('the idle one is closed', async () => sockets.size === 1)
  held[0]?.write(small)
  assert.equal(await slow.done, 'whole')
  await eventually('and the other one', async () => sockets.size === 0)
  assert.equal(await get(upstream).done, 'whole')
  await eventually('none is kept', async () => sockets.size === 0)
})

test('a paused response waits, and is whole once it is resumed', async () => {
  const size = 8 * 1024 * 1024
  let drained = false
  const { upstream } = await serve(socket => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
    socket.write(Buffer.alloc(size, 'x'), () => {
      drained = true
    })
  })
  const heard = get(upstream, { pauses: true })
  await eventually('it has begun', async () => heard.status === 200)
  const other = await serve(socket => socket.write(small))
  for (let round = 0; round < 20; round++) assert.equal(await get(other.upstream).done, 'whole')
  assert.deepEqual([heard.body.length < size, heard.state, drained], [true, 'open', false])
  heard.call.resume()
  assert.equal(await heard.done, 'whole')
  assert.equal(heard.body.length, size)
})

/** Sends `text` in pieces, each after the kernel has the previous one. */
async function read(text: string, { size = text.length, method = 'GET', closes = false } = {}): Promise<Heard> {
  const bytes = Buffer.from(text, 'latin1')
  const { upstream, sockets } = await serve(socket => {
    const next = (at: number) => {
      if (at < bytes.length)
        return void socket.write(bytes.subarray(at, at + size), () => setImmediate(next, at + size))
      if (closes) socket.end()
    }
    next(0)
  })
  const heard = get(upstream, { method })
  await heard.done
  if (heard.state !== 'whole') await eventually('its connection is closed', async () => sockets.size === 0)
  return heard
}

test('a response is the same however its bytes arrive', async () => {
  const cases: [string, string][] = [
    [lines('HTTP/1.1 200 OK', 'A: b', 'Content-Length: 5', '', 'hello'), 'hello'],
    [
      lines('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', '', '5', 'hello', '6;x=y', ' world', '0', '', ''),
      'hello world',
    ],
    [lines('HTTP/1.1 200 OK', 'Transfer-Encoding: Chunked', '', '1', 'a', '0', 'T: u', '', ''), 'a'],
    [lines('HTTP/1.1 103 Early Hints', '', 'HTTP/1.1 200 OK', 'Content-Length: 1', '', 'x'), 'x'],
    [lines('HTTP/1.1 204 No Content', '', ''), ''],
    [lines('HTTP/1.1 200', 'Content-Length: 0', '', ''), ''],
  ]
  for (const [text, body] of cases)
    for (const size of [1, 7, 1000]) {
      const heard = await read(text, { size })
      assert.deepEqual([heard.body, heard.state], [body, 'whole'], JSON.stringify(text))
    }
  assert.deepEqual((await read(cases[0]?.[0] ?? '')).headers, ['A', 'b', 'Content-Length', '5'])
})

test('a partial response is not a complete one', async () => {
  assert.equal((await read(lines('HTTP/1.1 200 OK', '', 'until the end'), { closes: true })).state, 'whole')
  for (const half of [
    lines('HTTP/1.1 200 OK', 'Content-Length: 9', '', 'half'),
    lines('HTTP/1.1 200 OK', 'Content-Length: 9', 'Connection: close', '', 'half'),
    lines('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', '', '4', 'half', ''),
    lines('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', 'Connection: close', '', '4', 'half', ''),
    'HTTP/1.1 200 OK\r\nA:',
  ])
    assert.equal((await read(half, { closes: true })).state, 'failed', half)
})

test('responses to HEAD, and 204 and 304, have no body whatever their headers', async () => {
  const head = lines('HTTP/1.1 200 OK', 'Content-Length: 50', '', '')
  assert.equal((await read(head, { method: 'HEAD' })).state, 'whole')
  assert.equal((await read(lines('HTTP/1.1 304 Not Modified', 'Content-Length: 50', '', ''))).state, 'whole')
})

test('a connection is not reused after extra data, after Connection: close, or with HTTP/1.0', async () => {
  for (const text of [
    lines('HTTP/1.1 200 OK', 'Content-Length: 1', '', 'xHTTP/1.1 200 OK'),
    lines('HTTP/1.1 200 OK', 'Content-Length: 1', '', lines('xHTTP/1.1 200 OK', 'Content-Length: 1', '', 'y')),
    lines('HTTP/1.1 200 OK', 'Connection: keep-alive, Close', 'Content-Length: 1', '', 'x'),
    lines('HTTP/1.0 200 OK', 'Content-Length: 1', '', 'x'),
    lines('HTTP/1.1 204 No Content', 'Content-Length: 3', '', 'abc'),
  ]) {
    const { upstream, sockets } = await serve((socket, count) => socket.write(count === 1 ? text : small))
    const first = get(upstream)
    assert.equal(await first.done, 'whole', text)
    await eventually('its connection is closed', async () => sockets.size === 0)
    assert.notEqual(first.body, 'y')
  }
})

test('an ambiguous response is rejected', async () => {
  const head = (...more: string[]) => lines('HTTP/1.1 200 OK', ...more, '', '')
  for (const text of [
    head('Content-Length: 1', 'Content-Length: 1'),
    head('Content-Length: 1, 1'),
    head('Content-Length: +1'),
    head('Content-Length: 0x1'),
    head('Content-Length: '),
    head('Content-Length: 1', 'Transfer-Encoding: chunked'),
    head('Transfer-Encoding: gzip, chunked'),
    head('Transfer-Encoding: identity'),
    head('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'),
    head('A: b', ' folded'),
    head('A : b'),
    head(': b'),
    head('no colon'),
    head('A: b\nB: c'),
    head('A: b\x00'),
    `${head('Transfer-Encoding: chunked')}g\r\n`,
    `${head('Transfer-Encoding: chunked')}-1\r\n`,
    `${head('Transfer-Encoding: chunked')}1\r\nxy\r\n`,
    `${head('Transfer-Encoding: chunked')}1\r\nx\n0\r\n\r\n`,
    lines('HTTP/1.1 101 Switching Protocols', 'Upgrade: x', '', ''),
    lines('HTTP/1.1 101 Switching Protocols', 'Upgrade: x', 'Connection: Upgrade', '', ''),
    lines('HTTP/2 200 OK', '', ''),
    lines('HTTP/1.1 20 OK', '', ''),
    lines('GET / HTTP/1.1', '', ''),
    `HTTP/1.1 200 OK\r\nA: ${'x'.repeat(70_000)}`,
  ]) {
    const { upstream } = await serve(socket => socket.write(Buffer.from(text, 'latin1')))
    const heard = get(upstream)
    assert.equal(await heard.done, 'failed', JSON.stringify(text.slice(0, 99)))
    assert.ok(heard.code, JSON.stringify(text.slice(0, 99)))
  }
})

test('an upstream that does not accept a connection in time fails without being reached', async () => {
  const upstream = openUpstream({
    server: 'http://127.0.0.1:1',
    connect: within =>
      new Promise((_, reject) => {
        const late = Object.assign(new Error('late'), { code: 'ETIMEDOUT' })
        setTimeout(() => reject(late), within)
      }),
  })
  closing.push(upstream.destroy)
  const failed = new Promise((resolve, reject) =>
    upstream.send(
      { method: 'GET', path: '/', headers: ['Host', 'x'], connectWithin: 20 },
      { head: reject, data: reject, end: () => reject(), failed: (error, how) => resolve({ ...error, ...how }) },
    ),
  )
  assert.deepEqual(await failed, { code: 'ETIMEDOUT', isStale: false, isConnected: false })
})
