// The connection to the server: proxies, CAs, mixed-up ports, colours. Errors name the likely cause.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect as connectSocket } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { after, before, test } from 'node:test'
import { type CliHome, openHome } from '../support/cli-home.ts'
import { closeAll } from '../support/close-all.ts'
import { type Server, startServer } from '../support/server.ts'
import { withTerminal } from '../support/terminal.ts'

let server: Server
let home: CliHome
before(async () => {
  server = await startServer()
  home = await openHome()
})
after(() => closeAll(home.close, server.stop))

const login = (url: string, caFile: string) => ['login', url, '--ca-file', caFile, '--access-key', '-', '--yes']
const ca = () => join(server.directory, 'ca.crt')

/** A proxy as companies have them: CONNECT alone, with or without a password. */
async function openProxy(password = '') {
  const asked: string[] = []
  const seen: Buffer[] = []
  const sockets: Duplex[] = []
  const proxy = createServer((_, response) => response.writeHead(405).end())
  const wanted = password && `Basic ${Buffer.from(`me:${password}`).toString('base64')}`
  proxy.on('connect', (request, client) => {
    asked.push(request.url ?? '')
    if (wanted && request.headers['proxy-authorization'] !== wanted)
      return void client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
    const { hostname, port } = new URL(`http://${request.url}`)
    const onward = connectSocket(Number(port), hostname, () =>
      client.write('HTTP/1.1 200 Connection established\r\n\r\n'),
    )
    client.on('data', chunk => seen.push(chunk))
    client.pipe(onward).pipe(client)
    for (const socket of [client, onward]) {
      socket.on('error', () => client.destroy())
      sockets.push(socket)
    }
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const { port } = proxy.address() as { port: number }
  const url = `http://${password ? `me:${password}@` : ''}127.0.0.1:${port}`
  return {
    url,
    asked,
    seen: () => Buffer.concat(seen),
    close: () => {
      for (const socket of sockets) socket.destroy()
      proxy.close()
    },
  }
}

test('HTTPS_PROXY applies to the first certificate check, NO_PROXY bypasses it, and the CA is verified behind it', async t => {
  const proxy = await openProxy()
  t.after(proxy.close)
  const { host } = new URL(server.https)
  for (const name of ['HTTPS_PROXY', 'https_proxy']) {
    const env = { [name]: proxy.url }
    proxy.asked.length = 0
    const fingerprint = /sha256:[0-9a-f]{64}/.exec(server.output())?.[0] ?? ''
    await home.ok(['login', server.https, '--ca-fingerprint', fingerprint, '--access-key', '-', '--yes'], {
      env,
      stdin: server.adminKey,
    })
    assert.ok(proxy.asked.length >= 2 && proxy.asked.every(one => one === host), `${proxy.asked}`)
    const before = proxy.asked.length
    assert.equal(await home.ok('whoami -o name', { env }), 'admin\n')
    assert.ok(proxy.asked.length > before)
    const then = proxy.asked.length
    assert.equal(await home.ok('whoami -o name', { env: { ...env, NO_PROXY: '127.0.0.1' } }), 'admin\n')
    assert.equal(proxy.asked.length, then)
  }
  assert.equal(proxy.seen().includes(server.adminKey), false, 'the proxy sees TLS alone')
  const other = await startServer({ storage: 'memory' })
  t.after(() => other.stop())
  const said = await home.fails(7, login(server.https, join(other.directory, 'ca.crt')), {
    env: { HTTPS_PROXY: proxy.url },
    stdin: server.adminKey,
  })
  assert.match(said, /cannot trust .*: its certificate is not signed by the CA in .*ca\.crt; nothing was sent/)
})

test('a proxy gets its password; an error names a proxy that rejects or is unreachable', async t => {
  const proxy = await openProxy('horse')
  t.after(proxy.close)
  await home.signIn(server)
  assert.equal(await home.ok('whoami -o name', { env: { HTTPS_PROXY: proxy.url } }), 'admin\n')
  const without = await home.fails(7, 'whoami', { env: { HTTPS_PROXY: proxy.url.replace('me:horse@', '') } })
  assert.match(
    without,
    /cannot reach .*: the proxy rejected the connection with status 407 .*HTTPS_PROXY=http:\/\/USER:PASSWORD@/,
  )
  assert.equal(without.includes('horse'), false)
  proxy.close()
  const gone = await home.fails(7, 'whoami', { env: { HTTPS_PROXY: proxy.url } })
  assert.match(gone, /cannot reach .* through the proxy 127\.0\.0\.1:\d+: connection refused/)
  assert.equal(gone.includes('horse'), false)
  assert.match(gone, /; using the proxy from HTTPS_PROXY\n$/)
  const none = server.https.replace('https:', 'http:')
  assert.match(
    await home.fails(7, 'whoami', { env: { https_proxy: none } }),
    /^platform: cannot reach .*: connection reset; using the proxy from https_proxy\n$/,
  )
  const fresh = ['login', server.https, '--context', 'fresh', '--access-key', '-']
  assert.match(
    await home.fails(7, fresh, { env: { HTTPS_PROXY: none }, stdin: server.adminKey }),
    /^platform: cannot reach .*; using the proxy from HTTPS_PROXY\n$/,
  )
})

test('a proxy is a URL or HOST:PORT; anything else is rejected with the name of its variable, and never bypassed', async t => {
  const proxy = await openProxy()
  t.after(proxy.close)
  await home.signIn(server)
  for (const name of ['HTTPS_PROXY', 'https_proxy']) {
    const before = proxy.asked.length
    assert.equal(await home.ok('whoami -o name', { env: { [name]: proxy.url.replace('http://', '') } }), 'admin\n')
    assert.ok(proxy.asked.length > before, 'HOST:PORT alone, as curl takes it')
    for (const wrong of ['nonsense', 'socks5://127.0.0.1:1', 'http://:horse-battery@', 'me:horse-battery@', 'a b:1'])
      for (const args of [['whoami'], login(server.https, ca()), ['login', server.https, '--access-key', '-']]) {
        const said = await home.fails(2, args, { env: { [name]: wrong }, stdin: server.adminKey })
        assert.match(said, new RegExp(`^platform: ${name} must be a URL such as http://proxy\\.example:3128`), wrong)
        assert.equal(said.includes('horse'), false)
      }
    assert.equal(await home.ok('whoami -o name', { env: { [name]: '' } }), 'admin\n')
    const others = { HTTP_PROXY: 'socks5://127.0.0.1:1', http_proxy: 'nonsense', ALL_PROXY: 'socks5://127.0.0.1:1' }
    assert.equal(await home.ok('whoami -o name', { env: others }), 'admin\n', 'an unused variable is not validated')
  }
})

test('failed output is an error: a full disk is reported, a closed pipe is not', async () => {
  await home.signIn(server)
  await home.ok('set secret printed a=-', { stdin: 'canary-printed' })
  for (const args of ['get secret printed.a -o value', 'list secrets', 'export secret printed']) {
    const { code, stderr } = await home.exec(args, { within: '"$@" > /dev/full' })
    assert.deepEqual([code, stderr], [1, 'platform: cannot write to standard output: no space left on device\n'], args)
  }
  const { code, stderr } = await home.exec('list clusterroles -o yaml', { within: '"$@" | head -1' })
  assert.deepEqual([code, stderr], [0, ''])
})

test('commands that make several changes finish even if their output fails', async () => {
  await home.signIn(server)
  const names = ['unread-1', 'unread-2']
  const stdin = names.map(name => `apiVersion: management.platform.sh/v1\nkind: Team\nmetadata: {name: ${name}}\n`)
  const unread = '{ "$@"; echo "exit code $?" >&2; } | true'
  const created = await home.exec('create -f -', { stdin: stdin.join('---\n'), within: unread })
  assert.equal(created.stderr, 'exit code 0\n')
  await home.ok(['get', 'team', ...names])
  const deleted = await home.exec(['delete', 'team', ...names, '--yes'], { within: '"$@" > /dev/full' })
  const { code, stderr } = deleted
  assert.deepEqual([code, stderr], [1, 'platform: cannot write to standard output: no space left on device\n'])
  for (const name of names) await home.fails(3, ['get', 'team', name])
})

test('https at the port of http, and http at the port of https, are reported', async () => {
  const https = server.http.replace('http:', 'https:')
  const http = server.https.replace('https:', 'http:')
  const key = { stdin: server.adminKey }
  assert.match(await home.fails(7, login(https, ca()), key), /does not speak TLS; it may serve plain HTTP/)
  assert.match(await home.fails(7, ['login', https, '--yes'], key), /does not speak TLS; it may serve plain HTTP/)
  assert.match(await home.fails(7, ['login', http, '--access-key', '-', '--yes'], key), /speaks TLS; use https:/)
})

test('a CA file that is empty, is a key, or belongs to another CA is reported with its name', async () => {
  writeFileSync(join(home.directory, 'none.pem'), 'hello')
  const key = { stdin: server.adminKey }
  assert.match(await home.fails(2, login(server.https, 'none.pem'), key), /none\.pem contains no PEM certificate/)
  assert.match(
    await home.fails(2, login(server.https, join(server.directory, 'ca.key')), key),
    /ca\.key contains no PEM certificate/,
  )
  assert.match(await home.fails(2, login(server.https, 'nowhere.pem'), key), /nowhere\.pem: there is no such file/)
  const env = { PLATFORM_ACCESS_KEY: server.adminKey, PLATFORM_SERVER: server.https, PLATFORM_CA_FILE: 'none.pem' }
  assert.match(await home.fails(2, 'whoami', { env }), /none\.pem contains no PEM certificate/)
})

test('--version and version print the same', async () => {
  const version = await home.ok('version')
  assert.match(version, /^\d+\.\d+\.\d+\n$/)
  assert.equal(await home.ok('--version'), version)
})

await withTerminal(() => {
  test('colours are for terminals, but not with NO_COLOR or TERM=dumb', async () => {
    await home.signIn(server)
    const coloured = '\x1b['
    assert.ok((await home.terminal('whoami').ended).text.includes(coloured))
    for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }])
      assert.equal((await home.terminal('whoami', { env }).ended).text.includes(coloured), false)
    assert.equal((await home.exec('whoami')).stdout.includes(coloured), false)
  })
})

test('a CA file and a fingerprint must both match, at the login and in a pipeline', async () => {
  const own = await openHome()
  const file = join(server.directory, 'ca.crt')
  const right = /sha256:[0-9a-f]{64}/.exec(server.output())?.[0] ?? ''
  const wrong = `sha256:${'0'.repeat(64)}`
  const words = (fingerprint: string) => [...login(server.https, file), '--ca-fingerprint', fingerprint]
  const refused = /cannot trust .*ca\.crt: it contains sha256:[0-9a-f]{64}, expected sha256:0{64}/
  assert.match(await own.fails(7, words(wrong), { stdin: server.adminKey }), refused)
  assert.match(await own.fails(2, words('abc'), { stdin: server.adminKey }), /64 hexadecimal digits/)
  const env = {
    PLATFORM_ACCESS_KEY: server.adminKey,
    PLATFORM_SERVER: server.https,
    PLATFORM_CA_FILE: file,
    PLATFORM_CA_FINGERPRINT: wrong,
  }
  assert.match(await own.fails(7, 'whoami', { env }), refused)
  const { PLATFORM_CA_FINGERPRINT: _, ...without } = env
  const connection = { ...without, PLATFORM_ACCESS_KEY: `${server.adminKey}@${server.https}#${wrong}` }
  assert.match(await own.fails(7, 'whoami', { env: connection }), refused)
  await own.ok('whoami', { env: { ...env, PLATFORM_CA_FINGERPRINT: right } })
  await own.ok(words(right), { stdin: server.adminKey })
  const colons = right.slice(7).toUpperCase().match(/../g)?.join(':')
  await own.ok(words(`sha256 Fingerprint=${colons}`), { stdin: server.adminKey })
  const several = await own.fails(2, [...login('https://127.0.0.1:1', 'nope').slice(0, -1), '--ca-fingerprint', 'abc'])
  assert.deepEqual(
    several
      .split('\n')
      .map(line => /the context "127\.0\.0\.1" is for|nope: there is no such file|64 hexa|^$/.exec(line)?.[0]),
    ['the context "127.0.0.1" is for', '64 hexa', 'nope: there is no such file', ''],
  )
  const env2 = { XDG_CONFIG_HOME: '/dev/null/x' }
  assert.equal(
    await own.fails(1, words(right), { stdin: server.adminKey, env: env2 }),
    'platform: cannot write /dev/null/x/platform/contexts.json: /dev/null is not a directory; set XDG_CONFIG_HOME to use another directory\n',
  )
  await own.close()
})
