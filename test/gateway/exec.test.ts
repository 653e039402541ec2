// A shell through a gateway, with a client and a WebSocket server that are not ours.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough, Writable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { Exec, KubeConfig, type V1Status } from '@kubernetes/client-node'
import { type WebSocket, WebSocketServer } from 'ws'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { eventually } from '../support/wire.ts'
import { claimsFor, openBackend, openTestGateway, type TestBackend, type TestGateway } from './in-process.ts'

const [stdin, stdout, stderr, error] = [0, 1, 2, 3]

describe('exec over WebSocket', () => {
  let backend: TestBackend
  let gateway: TestGateway
  let ca = ''
  const shells: WebSocket[] = []
  before(async () => {
    backend = await openBackend()
    const server = new WebSocketServer({
      noServer: true,
      handleProtocols: offered => [...offered].find(one => /^v[45]\.channel\.k8s\.io$/.test(one)) ?? false,
    })
    backend.server.on('upgrade', (request, socket, head) => {
      backend.got.push(request)
      server.handleUpgrade(request, socket, head, shell => {
        shells.push(shell)
        answerAsShell(shell)
      })
    })
    const mine = makeAuthority(Date.now())
    ca = mine.certificate
    const current = issueCertificate(mine, ['127.0.0.1'], Date.now())
    gateway = await openTestGateway({ backend, certificates: { current, follow: () => {}, stop: () => {} } })
  })
  after(() => gateway.close())

  async function open(claims = claimsFor()) {
    const config = new KubeConfig()
    config.loadFromOptions({
      clusters: [
        { name: 'prod', server: `${gateway.url}/kubernetes/cluster/prod`, caData: Buffer.from(ca).toString('base64') },
      ],
      users: [{ name: 'ada', token: await gateway.sign(claims) }],
      contexts: [{ name: 'prod', cluster: 'prod', user: 'ada' }],
      currentContext: 'prod',
    })
    const printed = { out: '', err: '' }
    const into = (name: 'out' | 'err') =>
      new Writable({
        write(chunk, _, done) {
          printed[name] += chunk
          done()
        },
      })
    const input = new PassThrough()
    let told: V1Status | undefined
    const heard = (status: V1Status) => {
      told = status
    }
    const socket = await new Exec(config).exec('a', 'p', 'c', ['sh'], into('out'), into('err'), input, false, heard)
    return { printed, input, socket, status: () => told }
  }

  test('input arrives, output comes back on its channels, and the exit status at the end', async () => {
    const { printed, input, socket, status } = await open()
    const big = 'x'.repeat(300_000)
    input.write('hello')
    input.write(big)
    await eventually('all of it came back', async () => printed.out.length === 5 + big.length)
    assert.equal(printed.out, `hello${big}`)
    input.write('fail')
    await eventually('the shell has ended', async () => status()?.status === 'Failure')
    assert.equal(printed.err, 'no such thing')
    if (socket.readyState < 3) await once(socket as never, 'close')
    const { headers, url } = backend.got.at(-1) as TestBackend['got'][0]
    assert.match(url ?? '', /^\/api\/v1\/namespaces\/a\/pods\/p\/exec\?.*command=sh/)
    assert.equal(headers['impersonate-user'], 'ada')
    assert.equal(headers.authorization, 'Bearer of-the-gateway')
  })

  test('an open shell ends on both sides when its token is revoked', async () => {
    const claims = claimsFor()
    const { printed, input, socket } = await open(claims)
    input.write('hello')
    await eventually('it answers', async () => printed.out === 'hello')
    const shell = shells.at(-1) as WebSocket
    const closed = Promise.all([once(socket as never, 'close'), once(shell, 'close')])
    await gateway.revoke({ jti: claims.jti })
    await closed
    assert.equal(shell.readyState, 3)
  })
})

/** Prints what it reads, and ends badly at a word. */
function answerAsShell(shell: WebSocket): void {
  const say = (channel: number, data: Buffer | string) =>
    shell.send(Buffer.concat([Buffer.of(channel), Buffer.from(data)]))
  shell.on('error', () => {})
  shell.on('message', (message: Buffer) => {
    if (message[0] !== stdin) return
    const data = message.subarray(1)
    if (String(data) !== 'fail') return say(stdout as number, data)
    say(stderr as number, 'no such thing')
    say(error as number, JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 1 }))
    shell.close()
  })
}
