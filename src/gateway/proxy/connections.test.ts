// Connections to a cluster made of bare sockets: answers that end, that are broken off, and connections that die unseen.

import assert from 'node:assert/strict'
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { eventually } from '../../../test/support/wire.ts'
import { ask, type Call, type Connect } from './connections.ts'

const closing: (() => void)[] = []
after(() => {
  for (const close of closing) close()
})

/** `answer`: what is done with a request; `count` is the connection's how manieth it is. */
async function cluster(answer: (socket: Socket, count: number) => void) {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    let count = 0
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', () => answer(socket, ++count))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const connect: Connect = () => connectTcp({ host: '127.0.0.1', port })
  return { connect, sockets }
}

type Heard = { call: Call; body: string; state: 'open' | 'whole' | 'failed' | 'stale'; done: Promise<Heard['state']> }

function get(connect: Connect, isFresh = false, retired?: AbortSignal): Heard {
  const heard = { body: '', state: 'open' } as Heard
  heard.done = new Promise(resolve => {
    const end = (state: Heard['state']) => {
      assert.equal(heard.state, 'open', 'it ends once')
      heard.state = state
      resolve(state)
    }
    const asked = { method: 'GET', text: 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', connectWithin: 10_000, isFresh, retired }
    heard.call = ask(connect, asked, {
      head: () => {},
      data: chunk => {
        heard.body += chunk
      },
      end: () => end('whole'),
      failed: (_, { isStale }) => end(isStale ? 'stale' : 'failed'),
    })
  })
  return heard
}

const small = 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx'

test('a connection is used again, by one at a time', async () => {
  const { connect, sockets } = await cluster(socket => socket.write(small))
  for (let round = 0; round < 3; round++) assert.equal(await get(connect).done, 'whole')
  assert.equal(sockets.size, 1)
  assert.deepEqual(await Promise.all([get(connect).done, get(connect).done]), ['whole', 'whole'])
  assert.equal(sockets.size, 2)
})

test('what has no length is whole when the cluster ends it, and half when it breaks it off', async () => {
  const { connect, sockets } = await cluster(socket => socket.write('HTTP/1.1 200 OK\r\n\r\nsome of it'))
  const ways: [(socket: Socket) => void, Heard['state']][] = [
    [socket => socket.end(' and all'), 'whole'],
    [socket => socket.resetAndDestroy(), 'failed'],
  ]
  for (const [finish, state] of ways) {
    const heard = get(connect)
    await eventually('some of it is here', async () => heard.body === 'some of it')
    for (const socket of sockets) finish(socket)
    assert.equal(await heard.done, state)
  }
})

test('a kept connection that dies unseen is stale; a fresh one is asked for, and takes the others that were kept along', async () => {
  let isDead = false
  const { connect, sockets } = await cluster((socket, count) => {
    if (isDead && count > 1) socket.destroy()
    else setImmediate(() => socket.write(small))
  })
  await Promise.all([get(connect).done, get(connect).done, get(connect).done])
  assert.equal(sockets.size, 3)
  isDead = true
  assert.equal(await get(connect).done, 'stale')
  assert.equal(await get(connect, true).done, 'whole')
  await eventually('the fresh one is left', async () => sockets.size === 1)
})

test('a request that nobody wants any more ends its connection, and hears nothing more', async () => {
  const { connect, sockets } = await cluster(socket => socket.write('HTTP/1.1 200 OK\r\n\r\nsome'))
  const heard = get(connect)
  await eventually('it has begun', async () => heard.body === 'some')
  heard.call.drop()
  await eventually('its connection is gone', async () => sockets.size === 0)
  assert.equal(heard.state, 'open')
})

test('where a cluster is reached so no more, idle connections end at once and the others when they are done', async () => {
  const held: Socket[] = []
  const { connect, sockets } = await cluster(socket => (held.length ? socket.write(small) : held.push(socket)))
  const { signal, abort } = (end => ({ signal: end.signal, abort: () => end.abort() }))(new AbortController())
  const slow = get(connect, false, signal)
  await eventually('it is asked', async () => held.length === 1)
  assert.equal(await get(connect, false, signal).done, 'whole')
  assert.equal(sockets.size, 2)
  abort()
  await eventually('the idle one has ended', async () => sockets.size === 1)
  held[0]?.write(small)
  assert.equal(await slow.done, 'whole')
  await eventually('and the other one', async () => sockets.size === 0)
  assert.equal(await get(connect, false, signal).done, 'whole')
  await eventually('none is kept', async () => sockets.size === 0)
})

test('an answer that is paused waits, and comes whole once it goes on', async () => {
  const size = 8 * 1024 * 1024
  let drained = false
  const { connect } = await cluster(socket => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
    socket.write(Buffer.alloc(size, 'x'), () => {
      drained = true
    })
  })
  const heard = get(connect)
  heard.call.pause()
  const other = await cluster(socket => socket.write(small))
  for (let round = 0; round < 20; round++) assert.equal(await get(other.connect).done, 'whole')
  assert.deepEqual([heard.body, heard.state, drained], ['', 'open', false])
  heard.call.resume()
  assert.equal(await heard.done, 'whole')
  assert.equal(heard.body.length, size)
})
