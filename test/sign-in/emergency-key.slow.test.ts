// `platform admin emergency-key`: a short-lived administrator key on the host, while the identity provider is down.

import assert from 'node:assert/strict'
import { chmodSync, existsSync, lstatSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { must, ours, refused, soon } from '../access/people.ts'
import { exec, type Output } from '../support/exec.ts'
import { type Server, startServer } from '../support/server.ts'
import { keys, openPeople, type PeopleStage, self } from './people-stage.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')
const socketIn = (directory: string) => join(directory, 'admin.sock')

const command = (...args: readonly string[]): Promise<Output> =>
  exec(process.execPath, [program, 'admin', 'emergency-key', ...args])

const emergency = (directory: string, reason = 'provider down', ...more: readonly string[]) =>
  command('--data', directory, '--reason', reason, ...more)

type Answered = { readonly status: number; readonly text: string }

/** A request over the socket, without the command. */
function post(directory: string, body: string, { method = 'POST', path = '/emergency-key' } = {}): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath: socketIn(directory), method, path }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    call.on('error', reject)
    call.end(body)
  })
}

async function countOf(server: Server): Promise<number> {
  const { text } = await server.request('GET', '/../../metrics')
  return Number(/^platform_emergency_keys_total (\d+)$/m.exec(text)?.[1])
}

const keysOf = async (server: Server): Promise<readonly { metadata: { name: string }; spec: object }[]> =>
  (await must(server.request('GET', keys))).items

suite('while the identity provider is down', () => {
  let stage: PeopleStage
  let directory: string
  before(async () => {
    stage = await openPeople({ args: ['--auth-require-users'] })
    directory = stage.server.directory
    await stage.provider.stop()
  })
  after(async () => {
    await stage.provider.start()
    await stage.close()
  })

  test('the command prints a key of the administrator that expires', async () => {
    await assert.rejects(fetch(stage.provider.url))
    const earlier = await countOf(stage.server)
    const { code, stdout, stderr } = await emergency(directory, 'provider down, ticket 7', '--ttl', '5m')
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^plat_\w{49}\n$/)
    const key = stdout.trim()
    const me = await must(stage.ask('POST', self, {}, key))
    assert.equal(me.status.userInfo.username, 'admin')
    await must(stage.ask('POST', `${ours}/teams`, { metadata: { name: 'rescue' } }, key))

    const [name = ''] = me.status.userInfo.extra?.['platform.sh/access-key'] ?? []
    const made = (await keysOf(stage.server)).filter(one => one.metadata.name.startsWith('emergency-'))
    assert.equal(made.length, 1)
    const { spec, metadata } = made[0] as (typeof made)[number] & { metadata: { creationTimestamp: string } }
    assert.ok(name === '' || name === metadata.name)
    assert.deepEqual(spec, {
      type: 'Other',
      user: 'admin',
      displayName: 'Emergency key: provider down, ticket 7',
      ttl: 300,
    })
    const expires = new Date(Date.parse(metadata.creationTimestamp) + 300_000).toISOString().replace('.000', '')
    assert.ok(stderr.includes(expires), stderr)
    assert.ok(stderr.includes(metadata.name), stderr)
    assert.ok(!stderr.includes(key))
    assert.equal(await countOf(stage.server), earlier + 1)
  })

  test('without --ttl the key is valid for 15 minutes', async () => {
    const { code, stderr } = await emergency(directory, 'default')
    assert.equal(code, 0, stderr)
    const made = (await keysOf(stage.server)).filter(({ spec }) => JSON.stringify(spec).includes('key: default'))
    assert.deepEqual(
      made.map(({ spec }) => (spec as { ttl: number }).ttl),
      [900],
    )
  })

  test('the audit log and the log show the reason and the user of the host', async () => {
    const { code, stdout, stderr } = await emergency(directory, 'audited reason')
    assert.equal(code, 0, stderr)
    // The event is in the file before the command ends.
    const events = readFileSync(join(directory, 'audit.log'), 'utf8')
      .split('\n')
      .filter(line => line.includes('audited reason'))
      .map(line => JSON.parse(line))
    assert.equal(events.length, 1)
    const [event] = events
    assert.deepEqual(
      [event.verb, event.objectRef.resource, event.user.username, event.userAgent],
      ['create', 'ownedaccesskeys', 'system:platform', 'emergency-key'],
    )
    const { annotations } = event
    assert.equal(annotations['platform.sh/emergency-reason'], 'audited reason')
    assert.ok(annotations['platform.sh/emergency-host-user'])
    assert.match(annotations['platform.sh/issued-key'], /^hmac-sha256:/)
    await soon('the log has the line', async () => stage.server.output().includes('audited reason'))
    const line = stage.server
      .output()
      .split('\n')
      .find(one => one.includes('audited reason'))
    const logged = JSON.parse(line ?? '')
    assert.deepEqual(
      [logged.level, logged.msg, logged.reason, logged.key, logged.hostUser],
      [
        40,
        'emergency key issued',
        'audited reason',
        event.objectRef.name,
        annotations['platform.sh/emergency-host-user'],
      ],
    )
    assert.ok(!stage.server.output().includes(stdout.trim()))
  })

  test('the command rejects bad arguments, and no key is created', async () => {
    const earlier = await countOf(stage.server)
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [['--data', directory], /--reason/],
      [['--data', directory, '--reason', ' '], /--reason/],
      [['--data', directory, '--reason', 'a\nb'], /--reason/],
      [['--data', directory, '--reason', 'x'.repeat(201)], /--reason/],
      [['--data', directory, '--reason', 'x', '--ttl', '59s'], /--ttl.*1m to 1h/],
      [['--data', directory, '--reason', 'x', '--ttl', '61m'], /--ttl.*1m to 1h/],
      [['--data', directory, '--reason', 'x', '--ttl', '900'], /--ttl/],
    ]
    for (const [args, why] of cases) {
      const { code, stdout, stderr } = await command(...args)
      assert.deepEqual([code, stdout], [2, ''], stderr)
      assert.match(stderr, why)
    }
    assert.equal(await countOf(stage.server), earlier)
  })

  test('the socket rejects bad requests, and no key is created', async () => {
    const earlier = await countOf(stage.server)
    const good = { reason: 'x', hostUser: 'root' }
    const bad: readonly unknown[] = [
      null,
      [],
      {},
      { reason: 'x' },
      { hostUser: 'root' },
      { ...good, reason: '' },
      { ...good, reason: '   ' },
      { ...good, reason: 7 },
      { ...good, reason: 'x'.repeat(201) },
      { ...good, reason: 'a\u001b[2J' },
      { ...good, reason: 'a\u202eb' },
      { ...good, hostUser: 'a\nb' },
      { ...good, ttlSeconds: 59 },
      { ...good, ttlSeconds: 3601 },
      { ...good, ttlSeconds: 60.5 },
      { ...good, ttlSeconds: '900' },
      { ...good, user: 'ada' },
    ]
    for (const body of bad) {
      const { status, text } = await post(directory, JSON.stringify(body))
      assert.equal(status, 400, `${JSON.stringify(body)}: ${text}`)
    }
    assert.equal((await post(directory, '{')).status, 400)
    assert.equal((await post(directory, JSON.stringify({ ...good, reason: 'x'.repeat(5000) }))).status, 413)
    assert.equal((await post(directory, '{}', { method: 'PUT' })).status, 405)
    assert.equal((await post(directory, '{}', { path: '/metrics' })).status, 404)
    assert.equal((await post(directory, '', { method: 'GET', path: '/' })).status, 404)
    assert.equal(await countOf(stage.server), earlier)
  })

  test('no TCP listener has the route', async () => {
    const earlier = await countOf(stage.server)
    const body = JSON.stringify({ reason: 'x', hostUser: 'root' })
    const headers = { Authorization: `Bearer ${stage.server.adminKey}`, 'Content-Type': 'application/json' }
    const { status } = await fetch(`${stage.server.http}/emergency-key`, { method: 'POST', headers, body })
    assert.ok([404, 405].includes(status), `${status}`)
    for (const path of ['/emergency-key', '/../../emergency-key'])
      assert.ok([404, 405].includes((await stage.server.request('POST', path, { body })).status), path)
    assert.equal(await countOf(stage.server), earlier)
  })

  test('the socket is only for its owner, and the command refuses another one', async () => {
    const socket = socketIn(directory)
    assert.ok(lstatSync(socket).isSocket())
    assert.equal(lstatSync(socket).mode & 0o777, 0o600)
    const earlier = await countOf(stage.server)
    chmodSync(socket, 0o660)
    try {
      const { code, stdout, stderr } = await emergency(directory)
      assert.deepEqual([code, stdout], [1, ''])
      assert.match(stderr, /admin\.sock has mode 0660 instead of 0600/)
    } finally {
      chmodSync(socket, 0o600)
    }
    assert.equal(await countOf(stage.server), earlier)
  })

  test('a client that sends nothing does not block the others or the shutdown', async () => {
    const silent = connect(socketIn(directory))
    silent.on('error', () => {})
    silent.write('POST /emergency-key HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n')
    const { code, stderr } = await emergency(directory, 'second client')
    assert.equal(code, 0, stderr)
    await stage.server.restart(async () => {
      assert.ok(!existsSync(socketIn(directory)), 'a stopped server removes the socket')
      const stopped = await emergency(directory)
      assert.deepEqual([stopped.code, stopped.stdout], [1, ''])
      assert.match(stopped.stderr, /no server is running.*platform admin reset/s)
    })
    silent.destroy()
  })

  test('a server replaces the socket of a killed one', async () => {
    await stage.server.die()
    assert.ok(existsSync(socketIn(directory)))
    const killed = await emergency(directory)
    assert.equal(killed.code, 1)
    assert.match(killed.stderr, /no server is running/)
    await stage.server.crash({})
    const { code, stderr } = await emergency(directory, 'after a crash')
    assert.equal(code, 0, stderr)
  })

  test('a disabled user admin stays disabled', async () => {
    await must(stage.ask('POST', `${ours}/users`, { metadata: { name: 'admin' }, spec: { disabled: true } }))
    await soon('the administrator is disabled', async () => (await stage.ask('GET', keys)).status === 401)
    const { code, stdout, stderr } = await emergency(directory, 'disabled')
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /the user admin is disabled/)
    await refused(stage.ask('GET', keys), 401)
  })
})

test('auth.maxKeyTTL also limits emergency keys, and the command prints the real expiry', async () => {
  const server = await startServer({ args: ['--auth-max-key-ttl', '300'] })
  try {
    const { code, stderr } = await emergency(server.directory, 'limited', '--ttl', '1h')
    assert.equal(code, 0, stderr)
    const [made] = (await keysOf(server)).filter(one => one.metadata.name.startsWith('emergency-'))
    assert.equal((made?.spec as { ttl?: number } | undefined)?.ttl, 300)
  } finally {
    await server.stop()
  }
})

test('a server whose path is too long for a socket runs without it, and the command says so', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'platform-emergency-'))
  const directory = join(parent, 'd'.repeat(108 - parent.length))
  const server = await startServer({ directory })
  try {
    assert.match(server.output(), /emergency keys are not available/)
    assert.ok(!existsSync(socketIn(directory)))
    const { code, stderr } = await emergency(directory)
    assert.equal(code, 1)
    assert.match(stderr, /too long for a socket/)
  } finally {
    await server.stop()
    rmSync(parent, { recursive: true, force: true })
  }
})

test('a server does not take the socket of a live one', async () => {
  // Servers with the memory engine do not lock the directory.
  const first = await startServer({ storage: 'memory' })
  try {
    const second = await startServer({ storage: 'memory', directory: first.directory })
    try {
      await soon('the second server warns', async () => second.output().includes('emergency keys are not available'))
    } finally {
      await second.die()
    }
    assert.equal((await emergency(first.directory)).code, 0)
    assert.equal(await countOf(first), 1)
  } finally {
    await first.stop()
  }
})

test('the command refuses a file that is not a socket, and a directory that does not exist', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-emergency-'))
  try {
    writeFileSync(socketIn(directory), '', { mode: 0o600 })
    const { code, stderr } = await emergency(directory)
    assert.equal(code, 1)
    assert.match(stderr, /is not a socket/)
    const missing = await emergency(join(directory, 'missing'))
    assert.equal(missing.code, 2)
    assert.match(missing.stderr, /does not exist/)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

test('the command does not print the response of something else', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-emergency-'))
  const other = createServer(socket => socket.resume().end('HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n[]'))
  try {
    await new Promise<void>(resolve => other.listen(socketIn(directory), resolve))
    chmodSync(socketIn(directory), 0o600)
    const { code, stdout, stderr } = await emergency(directory)
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /unexpected response/)
  } finally {
    await new Promise(resolve => other.close(resolve))
    rmSync(directory, { recursive: true, force: true })
  }
})
