// Wrong set-ups of etcd at the start of a server: the error says what failed, why, and what to do.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { versionProblem } from '../../src/storage/etcd/version.ts'
import { makeKeyRing } from '../../src/storage/key-ring.ts'
import { makeClientCertificate } from '../support/client-certificate.ts'
import { type EtcdCluster, startEtcd } from '../support/etcd.ts'
import { exec } from '../support/exec.ts'
import { freePort } from '../support/ports.ts'
import { etcdArgs } from '../support/replicas.ts'
import { startServer } from '../support/server.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')

describe('a server with etcd refuses to start', () => {
  let scratch: string
  let etcd: EtcdCluster
  before(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'platform-etcd-setup-'))
    etcd = await startEtcd()
  })
  after(async () => {
    await etcd.close()
    rmSync(scratch, { recursive: true, force: true })
  })
  let count = 0

  const serve = async (...args: readonly string[]) => {
    const data = join(scratch, `data-${++count}`)
    const listen = ['--https', '127.0.0.1:0', '--http', 'off']
    const all = [program, 'serve', '--data', data, ...listen, '--storage', 'etcd', ...args]
    const { code, stdout, stderr } = await exec(process.execPath, all, { timeout: 60_000 })
    assert.notEqual(code, 0, stdout)
    assert.notEqual(code, 124, 'it runs')
    assert.doesNotMatch(stderr, /^\s+at /m)
    return stderr
  }
  const endpoint = () => etcd.endpoints[0] as string

  test('without endpoints, or with other things than URLs', async () => {
    assert.match(await serve(), /storage etcd requires etcd\.endpoints \(--etcd-endpoints URL/)
    assert.match(await serve('--etcd-endpoints', 'localhost'), /must be URLs such as https:/)
    assert.match(await serve('--etcd-endpoints', endpoint(), '--etcd-prefix', 'x'), /must be a path such as \/platform/)
    assert.match(
      await serve('--etcd-endpoints', endpoint(), '--etcd-ca', '/nowhere'),
      /etcd\.ca: cannot read \/nowhere: there is no such file/,
    )
    assert.match(await serve('--etcd-endpoints', endpoint(), '--etcd-cert', '/nowhere'), /must be set together/)
  })

  test('if no member responds: the error names each endpoint', async () => {
    const dead = `http://127.0.0.1:${await freePort()}`
    const said = await serve('--etcd-endpoints', dead)
    assert.match(said, /no etcd endpoint responds\. Check --etcd-endpoints, --etcd-ca, --etcd-cert and --etcd-key/)
    assert.ok(said.includes(`etcd ${dead}: `) && said.includes('ECONNREFUSED'), said)
  })

  test('if the members have no quorum', async () => {
    const three = await startEtcd({ members: 3 })
    try {
      await three.members[1]?.kill()
      await three.members[2]?.kill()
      assert.match(
        await serve('--etcd-endpoints', three.endpoints[0] as string),
        /etcd has no quorum, or does not respond/,
      )
    } finally {
      await three.close()
    }
  })

  test('if the prefix holds keys of another program', async () => {
    await put(endpoint(), '/foreign/key', 'value')
    const said = await serve('--etcd-endpoints', endpoint(), '--etcd-prefix', '/foreign')
    assert.match(said, /the prefix \/foreign of etcd holds 1 keys that are not of this program\. Choose another one/)
  })

  test('if the data has another format', async () => {
    await put(endpoint(), '/future/records/installation', JSON.stringify({ format: 9, id: 'x', offset: 0 }))
    const said = await serve('--etcd-endpoints', endpoint(), '--etcd-prefix', '/future')
    assert.match(said, /has format 9, but this version of platform supports format 1: use a newer version/)
  })

  test('with another master key than the other replicas', async () => {
    const args = etcdArgs(etcd, ['--etcd-prefix', '/keys'])
    const first = await startServer({ args })
    try {
      const ring = join(scratch, 'other.key')
      writeFileSync(
        ring,
        makeKeyRing(size => randomBytes(size)),
        { mode: 0o600 },
      )
      const said = await serve('--etcd-endpoints', endpoint(), '--etcd-prefix', '/keys', '--master-key', ring)
      assert.match(said, /master key|key ring/)
      assert.match(said, /other\.key/)
      const none = await serve('--etcd-endpoints', endpoint(), '--etcd-prefix', '/keys')
      assert.match(none, /master\.key is missing, and the store has secrets/)
    } finally {
      await first.stop()
    }
  })

  test('with a wrong CA, without or with a wrong client certificate; the right ones work', async () => {
    const [authority, other] = [makeAuthority(Date.now()), makeAuthority(Date.now())]
    const at = (name: string) => join(scratch, name)
    const save = (name: string, pair: { certificate: string; key: string }) => {
      writeFileSync(at(`${name}.crt`), pair.certificate)
      writeFileSync(at(`${name}.key`), pair.key)
    }
    save('ca', authority)
    save('other', other)
    save('member', issueCertificate(authority, ['127.0.0.1'], Date.now()))
    await makeClientCertificate(scratch, 'client', 'ca')
    await makeClientCertificate(scratch, 'stranger', 'other')
    const secure = await startEtcd({ tls: { ca: at('ca.crt'), cert: at('member.crt'), key: at('member.key') } })
    const pair = (name: string) => ['--etcd-cert', at(`${name}.crt`), '--etcd-key', at(`${name}.key`)]
    const ca = (name: string) => ['--etcd-ca', at(`${name}.crt`)]
    const target = ['--etcd-endpoints', secure.endpoints[0] as string]
    try {
      const wrong = /no etcd endpoint responds\. Check --etcd-endpoints, --etcd-ca, --etcd-cert and --etcd-key/
      assert.match(await serve(...target, ...ca('other'), ...pair('client')), wrong)
      assert.match(await serve(...target, ...ca('ca')), wrong)
      assert.match(await serve(...target, ...ca('ca'), ...pair('stranger')), wrong)
      const server = await startServer({ args: ['--storage', 'etcd', ...target, ...ca('ca'), ...pair('client')] })
      await server.stop()
    } finally {
      await secure.close()
    }
  })
})

test('versions of etcd with known bugs are refused, with the version that fixes them', () => {
  for (const [version, fixed] of [
    ['3.4.23', '3.5.28'],
    ['3.5.12', '3.5.28'],
    ['3.5.27', '3.5.28'],
    ['3.6.8', '3.6.9'],
  ] as const)
    assert.ok(versionProblem(version)?.includes(fixed), version)
  for (const version of ['3.5.28', '3.5.30', '3.6.9', '3.7.1', '4.0.0'])
    assert.equal(versionProblem(version), undefined)
  assert.match(versionProblem('kine') ?? '', /unknown version/)
})

/** Over etcd's JSON gateway, so that the test does not use the code under test. */
async function put(endpoint: string, key: string, value: string): Promise<void> {
  const body = JSON.stringify({ key: btoa(key), value: btoa(value) })
  const response = await fetch(`${endpoint}/v3/kv/put`, { method: 'POST', body })
  assert.ok(response.ok, await response.text())
}
