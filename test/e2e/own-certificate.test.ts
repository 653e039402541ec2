// A server with a certificate of the operator: clients get the CA that signed it, and a renewal does not change that.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect } from 'node:tls'
import { fingerprint, issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { killProgram, startProgram } from '../support/cluster-process.ts'
import { exec } from '../support/exec.ts'
import { eventually } from '../support/wire.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')
const authority = makeAuthority(Date.now())

async function open(t: TestContext, { chain, ca }: { readonly chain: boolean; readonly ca?: string }) {
  const directory = mkdtempSync(join(tmpdir(), 'platform-own-certificate-'))
  const at = (name: string) => join(directory, name)
  const renew = () => {
    const { certificate, key } = issueCertificate(authority, ['localhost', '127.0.0.1'], Date.now())
    writeFileSync(at('tls.key'), key)
    writeFileSync(at('tls.crt'), chain ? certificate + authority.certificate : certificate)
  }
  renew()
  if (ca !== undefined) writeFileSync(at('tls-ca.crt'), ca)
  const args = [
    ...['--data', at('data'), '--https', '127.0.0.1:0', '--http', 'off', '--tls-cert', at('tls.crt')],
    ...['--tls-key', at('tls.key'), ...(ca === undefined ? [] : ['--tls-ca', at('tls-ca.crt')])],
  ]
  t.after(() => rmSync(directory, { recursive: true }))
  const start = async () => {
    const started = await startProgram([program, 'serve', ...args], /^platform is ready: (https:\S+?)[,\s]/m)
    t.after(() => killProgram(started.child, 'SIGTERM'))
    return started
  }
  const caIn = () => {
    const [, data] = /certificate-authority-data: (\S+)/.exec(readFileSync(at('data/admin.kubeconfig'), 'utf8')) ?? []
    return data === undefined ? undefined : Buffer.from(data, 'base64').toString()
  }
  return { at, args, renew, start, caIn }
}

/** The fingerprint of the server's certificate, which this CA must have signed. */
async function served(url: string, ca: string): Promise<string> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', servername: 'localhost', ca })
  await once(socket, 'secureConnect')
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

for (const [from, options] of [
  ['the chain', { chain: true }],
  ['--tls-ca', { chain: false, ca: authority.certificate }],
] as const)
  test(`admin.kubeconfig, the first start and connection strings use the CA from ${from}, also after a renewal`, async t => {
    const { at, args, renew, start, caIn } = await open(t, options)
    const { printed, found: url, child } = await start()
    assert.ok(printed().includes(`  CA fingerprint   ${fingerprint(authority.certificate)}\n`), printed())
    assert.equal(caIn(), authority.certificate)
    const key = readFileSync(at('data/admin.key'), 'utf8').trim()
    const whoami = () =>
      exec(process.execPath, [program, 'whoami'], {
        env: {
          PATH: process.env['PATH'],
          HOME: at('home'),
          PLATFORM_ACCESS_KEY: `${key}@${url}#${fingerprint(authority.certificate)}`,
        },
      })
    const first = await whoami()
    assert.equal(first.code, 0, first.stderr)
    const before = await served(url, caIn() ?? '')
    renew()
    await eventually('the new certificate is served', async () => (await served(url, caIn() ?? '')) !== before)
    assert.equal((await whoami()).code, 0)
    await killProgram(child, 'SIGTERM')
    rmSync(at('data/admin.kubeconfig'))
    const reset = await exec(process.execPath, [program, 'admin', 'reset', ...args, '--https', '127.0.0.1:8443'])
    assert.equal(reset.code, 0, reset.stderr)
    assert.equal(caIn(), authority.certificate)
  })

test('without the CA in the chain, the first start says so, and clients use the CAs of their machine', async t => {
  const { start, caIn } = await open(t, { chain: false })
  const { printed } = await start()
  assert.match(printed(), /^ {2}CA fingerprint {3}unknown: \S+tls\.crt does not contain the CA; .*--tls-ca/m)
  assert.equal(caIn(), undefined)
})

test('a CA that did not sign the certificate is rejected', async t => {
  const { args, at } = await open(t, { chain: false, ca: makeAuthority(Date.now()).certificate })
  for (const command of [['serve'], ['config', 'check']]) {
    const { status, stderr } = spawnSync(process.execPath, [program, ...command, ...args], { encoding: 'utf8' })
    assert.equal(status, 2)
    assert.equal(stderr, `platform: tlsCa: no certificate of ${at('tls-ca.crt')} signed ${at('tls.crt')}\n`)
  }
})
