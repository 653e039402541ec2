// How often a gateway reloads its files, and what it keeps if they are invalid or a part of them is unusable.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { kubeconfigOf } from '../../../test/support/kubeconfig.ts'
import { issueCertificate, makeAuthority } from '../../serving/certificate.ts'
import { openCertificates } from '../certificates.ts'
import { checksOf } from '../health.ts'
import { openSetupLoader } from './load.ts'
import { type Following, openSetup } from './reload.ts'
import { type Part, prepareAll, prepareSome } from './reload-transaction.ts'
import type { GatewayConfig } from './schema.ts'

const authority = makeAuthority(Date.now())
const alone = {
  listen: '127.0.0.1:0',
  issuer: { url: 'https://issuer.test' },
  service: { keyFile: 'agent.key' },
  tls: { certificate: 'tls.crt', key: 'tls.key' },
}

/** The files of a gateway and their reloader, with a manual clock. */
function open(t: TestContext, first: object, isAlone = false) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const directory = mkdtempSync(join(tmpdir(), 'platform-reload-'))
  const file = join(directory, 'gateway.yaml')
  const put = (name: string, text: string) => writeFileSync(join(directory, name), text)
  const head = { apiVersion: 'config.platform.sh/v1', kind: 'GatewayConfig' }
  const write = (config: object) => put('gateway.yaml', JSON.stringify({ ...head, ...config }))
  const pair = issueCertificate(authority, ['localhost'], Date.now())
  put('tls.crt', pair.certificate)
  put('tls.key', pair.key)
  for (const name of ['one', 'two']) put(name, kubeconfigOf(`https://${name}.test`))
  write(first)
  const setup = openSetup(openSetupLoader(file, isAlone, { env: {}, now: Date.now }), Date.now)
  const told: string[] = []
  t.after(() => {
    setup.stop()
    rmSync(directory, { recursive: true })
  })
  return {
    file,
    setup,
    told,
    put,
    write,
    follow: (following: Partial<Following> = {}) =>
      setup.follow({ info: text => told.push(text), error: text => told.push(text), ...following }),
    async seconds(count: number) {
      for (let n = 0; n < count; n++) {
        t.mock.timers.tick(1000)
        for (let turn = 0; turn < 5; turn++) await setImmediate()
      }
    },
  }
}
const clusters = (...names: string[]) => ({ clusters: names.map(name => ({ name, kubeconfig: name })) })

test('a file that names more files, or fewer, is reloaded once', async t => {
  const { setup, write, put, follow, seconds } = open(t, clusters('one'))
  follow()
  write(clusters('one', 'two'))
  await seconds(6)
  assert.equal(setup.reloads.used, 1)
  write(clusters('two'))
  await seconds(6)
  assert.equal(setup.reloads.used, 2)
  put('one', 'nobody names it any more')
  await seconds(4)
  assert.deepEqual([setup.reloads.used, setup.reloads.failed], [2, 0])
  put('two', kubeconfigOf('https://three.test'))
  await seconds(4)
  assert.equal(setup.reloads.used, 3)
})

test('the changed file is named, and the gateway reports outdated files until it uses them', async t => {
  const { setup, file, told, put, write, follow, seconds } = open(t, clusters('one', 'two'))
  const config = checksOf({
    keySet: { age: () => 0 },
    revocations: { age: () => 0 },
    reloads: setup.reloads,
    staleFeedReason: () => undefined,
    shuttingDown: new AbortController().signal,
    now: Date.now,
  }).readyz.find(({ name }) => name === 'config')
  const one = join(dirname(file), 'one')
  const says = () => config?.about?.()
  follow()
  assert.equal(says(), 'up to date')
  put('one', kubeconfigOf('https://other.test'))
  assert.equal(says(), 'files have changed, reload pending')
  await seconds(4)
  assert.equal(says(), 'up to date')
  put('one', 'nothing')
  put('two', kubeconfigOf('https://another.test'))
  await seconds(4)
  assert.match(says() ?? '', /^reload has been failing for \d+ s/)
  put('one', kubeconfigOf('https://other.test'))
  write(clusters('one', 'two'))
  await seconds(4)
  assert.equal(says(), 'up to date')
  const [first, second, third] = told
  assert.deepEqual([first, told.length], [`configuration reloaded (changed: ${one})`, 3])
  assert.ok(
    second?.startsWith(
      `configuration reload failed (changed: ${one}, ${join(dirname(file), 'two')}), keeping the previous configuration:`,
    ),
    second,
  )
  assert.equal(third, `configuration reloaded (changed: ${file}, ${one}, ${join(dirname(file), 'two')})`)
})

test('a CA that is created while a configuration is activated is not a change of it', async t => {
  const { setup, file, write, follow, seconds } = open(t, alone, true)
  const certificates = openCertificates(setup.config, file, Date.now)
  t.after(certificates.stop)
  follow({ prepare: config => prepareAll([certificates], config) })
  write({ ...alone, tls: { directory: 'own' } })
  await seconds(6)
  assert.equal(setup.reloads.used, 1)
})

const shown = (certificates: ReturnType<typeof openCertificates>) =>
  new X509Certificate(certificates.view().current.certificate).fingerprint256

test('a failed activation leaves everything unchanged, and is reported', async t => {
  const { setup, file, told, put, write, follow, seconds } = open(t, alone, true)
  const certificates = openCertificates(setup.config, file, Date.now)
  t.after(certificates.stop)
  const followed: string[] = []
  certificates.view().follow(({ certificate }) => void followed.push(new X509Certificate(certificate).fingerprint256))
  const [before, places] = [shown(certificates), setup.current()]
  const counted = { dropped: 0 }
  let isBroken = true
  const broken: Part = {
    prepare: () => ({
      use() {
        if (isBroken) throw new Error('no room')
      },
      drop: () => void counted.dropped++,
      done: () => {},
    }),
  }
  const other = issueCertificate(authority, ['localhost'], Date.now())
  put('other.crt', other.certificate)
  put('other.key', other.key)
  const wanted: GatewayConfig = { ...alone, tls: { certificate: 'other.crt', key: 'other.key' } }
  follow({ prepare: config => prepareAll([certificates, broken], config) })
  write({ ...wanted, ...clusters('one') })
  await seconds(3)
  assert.equal(shown(certificates), before)
  assert.equal(followed.at(-1), before, 'followers received it')
  assert.equal(setup.current(), places)
  assert.deepEqual([setup.config.clusters, setup.config.tls], [undefined, alone.tls])
  assert.deepEqual([setup.reloads.used, setup.reloads.failed, counted.dropped], [0, 1, 1])
  assert.match(told.join('\n'), /keeping the previous configuration: no room/)
  isBroken = false
  write({ ...wanted, ...clusters('one', 'two') })
  await seconds(3)
  assert.notEqual(shown(certificates), before)
  assert.equal(setup.config.clusters?.length, 2)
})

test('a renewed certificate is used although the configuration is invalid; nothing else of it is used', async t => {
  const { setup, file, told, put, write, follow, seconds } = open(t, { ...alone, ...clusters('one') }, true)
  const certificates = openCertificates(setup.config, file, Date.now)
  t.after(certificates.stop)
  follow({
    prepare: config => prepareAll([certificates], config),
    renew: config => prepareSome([certificates], config),
  })
  const places = setup.current()
  const before = shown(certificates)
  write({ ...alone, lisen: 'x', clusters: [] })
  await seconds(3)
  assert.deepEqual([shown(certificates), setup.reloads.failed], [before, 1])
  const next = issueCertificate(authority, ['localhost'], Date.now())
  put('tls.crt', next.certificate)
  await seconds(3)
  assert.equal(shown(certificates), before, 'its key has not come yet')
  put('tls.key', next.key)
  put('one', kubeconfigOf('https://other.test'))
  await seconds(3)
  assert.equal(shown(certificates), new X509Certificate(next.certificate).fingerprint256)
  assert.equal(setup.current(), places, 'where a cluster is belongs to the file that names it')
  assert.match(told.at(-1) ?? '', /reloaded the certificate and CA files of the previous configuration/)
  assert.notEqual(setup.reloads.failingSince, undefined, 'the file still cannot be used')
})

test('a certificate that cannot be renewed is reported once, even if the configuration did not change', async t => {
  const { setup, file, told, put, follow, seconds } = open(t, { ...alone, ...clusters('one') }, true)
  const certificates = openCertificates(setup.config, file, Date.now)
  t.after(certificates.stop)
  follow({
    prepare: config => prepareAll([certificates], config),
    renew: config => prepareSome([certificates], config),
  })
  const next = issueCertificate(authority, ['localhost'], Date.now())
  put('gateway.yaml', '{')
  put('tls.crt', next.certificate)
  await seconds(3)
  put('gateway.yaml', '{{')
  await seconds(3)
  assert.equal(setup.reloads.failed, 2)
  const about = told.filter(text => text.includes('do not match'))
  assert.deepEqual([about.length, told.length], [1, 3], told.join('\n'))
  assert.match(about[0] ?? '', /^cannot reload the certificate and CA files of the previous configuration: .*tls\.crt/)
})
