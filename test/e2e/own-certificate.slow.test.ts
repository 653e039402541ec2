// A server with a certificate of the operator: clients get the CA that signed it, and a renewal does not change that.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect } from 'node:tls'
import { fingerprint, issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { openHome } from '../support/cli-home.ts'
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

test('without the CA in the chain, a connection string contains the CA of the session', async t => {
  const { start, at } = await open(t, { chain: false })
  const { found: url } = await start()
  const home = await openHome()
  t.after(home.close)
  const other = makeAuthority(Date.now()).certificate
  writeFileSync(at('bundle.crt'), other + authority.certificate)
  const stdin = readFileSync(at('data/admin.key'), 'utf8')
  await home.ok(['login', url, '--ca-file', at('bundle.crt'), '--access-key', '-'], { stdin })
  const made = await home.ok('create accesskey ci -o connection')
  const whoami = (key: string, env = {}) => home.run('whoami -o name', { env: { PLATFORM_ACCESS_KEY: key, ...env } })
  const works = await whoami(made.trim())
  assert.deepEqual([works.code, works.stdout], [0, 'admin\n'], works.stderr)
  const again = await home.ok('create accesskey again -o connection', { env: { PLATFORM_ACCESS_KEY: made.trim() } })
  assert.equal((await whoami(again.trim())).code, 0, 'a session from a connection string makes one too')
  const rotated = await home.ok('rotate accesskey ci --yes -o connection')
  assert.equal((await whoami(rotated.trim())).code, 0)
  const [before, after] = rotated.trim().split('#ca:') as [string, string]
  writeFileSync(at('other.crt'), other)
  const refused = await whoami(rotated.trim(), { PLATFORM_CA_FILE: at('other.crt') })
  assert.deepEqual([refused.code, /it contains sha256:\w+, expected sha256:/.test(refused.stderr)], [7, true])
  const foreign = new X509Certificate(other).raw.toString('base64url')
  assert.match(
    (await whoami(`${before}#ca:${foreign}`)).stderr,
    /not signed by the CA in the connection string; nothing was sent/,
  )
  const cut = await whoami(`${before}#ca:${after.slice(0, -20)}`)
  assert.deepEqual([cut.code, /neither a key nor a valid KEY@URL#sha256:FINGERPRINT/.test(cut.stderr)], [2, true])
  assert.ok(!cut.stderr.includes(before.split('@')[0] ?? ''))
})

test('with an intermediate certificate, a connection string contains the CA; without it, no key is created', async t => {
  const { start, at } = await open(t, { chain: false })
  const home = await openHome()
  t.after(home.close)
  // The CA of the program signs only server certificates.
  const script = `set -e
    new() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $1.key -subj /CN=$1 "\${@:2}"; }
    new root -x509 -days 2 -out root.crt
    sign() { new $1 -out $1.csr; openssl x509 -req -in $1.csr -CA $2.crt -CAkey $2.key -CAcreateserial -days 2 -extfile <(echo $3) -out $1.crt; }
    sign middle root basicConstraints=critical,CA:TRUE
    sign leaf middle subjectAltName=IP:127.0.0.1,DNS:localhost
    cat middle.crt root.crt > both.crt
    cp leaf.key tls.key; cat leaf.crt middle.crt > tls.crt`
  const made = await exec('bash', ['-c', script], { cwd: at('.') })
  assert.equal(made.code, 0, made.stderr)
  const { found: url } = await start()
  const stdin = readFileSync(at('data/admin.key'), 'utf8')
  await home.ok(['login', url, '--ca-file', at('both.crt'), '--access-key', '-'], { stdin })
  const key = (await home.ok('create accesskey ci -o connection')).trim()
  assert.equal(await home.ok('whoami -o name', { env: { PLATFORM_ACCESS_KEY: key } }), 'admin\n')
  const ca = readFileSync(at('root.crt'), 'utf8')
  const sent = () =>
    served(url, ca).then(
      () => true,
      () => false,
    )
  assert.equal(await sent(), true)
  writeFileSync(at('tls.crt'), readFileSync(at('leaf.crt')))
  await eventually('the chain is incomplete', async () => !(await sent()))
  const refused =
    /sends an incomplete chain of certificates, .* or use -o value with PLATFORM_SERVER and PLATFORM_CA_FILE\n$/
  assert.match(await home.fails(2, 'create accesskey late -o connection'), refused)
  await home.fails(3, 'get accesskey late')
  assert.match(await home.fails(2, 'rotate accesskey ci --yes -o connection'), refused)
  const [old] = key.split('@')
  const env = { PLATFORM_ACCESS_KEY: old, PLATFORM_SERVER: url, PLATFORM_CA_FILE: at('both.crt') }
  assert.equal(await home.ok('whoami -o name', { env }), 'admin\n', 'the key is not rotated')
})

test('a CA that did not sign the certificate is rejected', async t => {
  const { args, at } = await open(t, { chain: false, ca: makeAuthority(Date.now()).certificate })
  for (const command of [['serve'], ['config', 'check']]) {
    const { status, stderr } = spawnSync(process.execPath, [program, ...command, ...args], { encoding: 'utf8' })
    assert.equal(status, 2)
    assert.equal(stderr, `platform: tlsCa: no certificate of ${at('tls-ca.crt')} signed ${at('tls.crt')}\n`)
  }
})
