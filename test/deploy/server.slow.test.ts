// The real server accepts the settings of the manifests, answers their probes, and runs the commands of docs/KUBERNETES.md.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { connect } from 'node:tls'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { openMetrics } from '../../src/serving/metrics.ts'
import { servePages } from '../../src/serving/status-listener.ts'
import { makeKeyRing } from '../../src/storage/key-ring.ts'
import { findKubectls } from '../support/kubectl.ts'
import { notRun } from '../support/missing-tool.ts'
import { build, titleOf, variants, workloadsIn } from './built.ts'
import { openPod, type Pod, type Secrets } from './pod.ts'

const now = Date.now()
const authority = makeAuthority(now)
const { certificate, key } = issueCertificate(authority, ['platform.example.org', '127.0.0.1'], now)
const pair = { 'tls.crt': certificate, 'tls.key': key, 'ca.crt': authority.certificate }
const secrets: Secrets = {
  'platform-master-key': { 'master.key': makeKeyRing(size => randomBytes(size)) },
  'platform-tls': pair,
  'platform-etcd': { ...pair, endpoints: 'https://etcd-0.example.org:2379,https://etcd-1.example.org:2379' },
}

/** The names in the certificate that the server presents. */
async function namesAt(url: string, ca: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), ca })
  await new Promise((resolve, reject) => socket.once('secureConnect', () => resolve(0)).once('error', reject))
  const { subjectaltname = '' } = socket.getPeerCertificate()
  socket.destroy()
  return subjectaltname
}

const [kubectl] = (await findKubectls()).toReversed()
if (!kubectl) notRun('kubectl ≥ 1.29')
else {
  const servers = variants.filter(({ overlay }) => overlay === 'single' || overlay === 'etcd')
  for (const variant of servers)
    test(`the program accepts the settings of ${titleOf(variant)}`, async t => {
      const pod = await openPod(await build(kubectl.file, variant), secrets, 'platform-2')
      t.after(() => pod.close())
      const { code, stdout, stderr } = await pod.run('config', 'check')
      assert.equal(code, 0, stderr)
      assert.match(stdout, new RegExp(`^storage: ${variant.overlay === 'etcd' ? 'etcd' : 'sqlite'}$`, 'm'))
      assert.ok(stdout.includes(`\nmasterKey: ${pod.at('/etc/platform/keys/master.key')}\n`))
      assert.ok(stdout.includes(`\ndata: ${pod.at('/data/platform')}\n`))
      if (variant.overlay !== 'etcd') return
      assert.match(stdout, /^replica\.url: https:\/\/platform-2\.platform-replicas\.platform\.svc:8443$/m)
      assert.match(stdout, /^etcd\.endpoints: .*etcd-0.*etcd-1/m)
    })

  test('the server of the overlay single answers its probes, issues an emergency key and writes a backup', async t => {
    const objects = await build(kubectl.file, { overlay: 'single', components: [] })
    const pod = await openPod(objects, secrets)
    t.after(() => pod.close())
    await pod.start()
    await answersProbes(pod, objects)
    const names = await namesAt(pod.url, readFileSync(pod.at('/data/platform/ca.crt'), 'utf8'))
    for (const name of ['platform.example.org', 'platform.platform.svc'])
      assert.ok(names.includes(`DNS:${name}`), names)
    const issued = await pod.run('admin', 'emergency-key', '--reason', 'first start')
    assert.equal(issued.code, 0, issued.stderr)
    const { status } = await pod
      .requests(issued.stdout.trim())
      .request('GET', '/kubernetes/management/apis/management.platform.sh/v1/teams')
    assert.equal(status, 200)
    const backup = await pod.run('backup', '-')
    assert.equal(backup.code, 0, backup.stderr)
    assert.ok(backup.stdout.length > 100)
    assert.deepEqual(readdirSync(pod.at('/etc/platform/config')), ['server.yaml'])
    assert.equal(await pod.stop(), 0)
  })

  test('the server presents the certificate of the Secret', async t => {
    const objects = await build(kubectl.file, { overlay: 'single', components: ['tls-secret'] })
    const pod = await openPod(objects, secrets)
    t.after(() => pod.close())
    await pod.start()
    const names = await namesAt(pod.url, authority.certificate)
    assert.ok(names.includes('DNS:platform.example.org'))
    assert.equal(names.includes('platform.platform.svc'), false)
  })
}

async function answersProbes(pod: Pod, objects: Parameters<typeof workloadsIn>[0]): Promise<void> {
  const [container = assert.fail()] = workloadsIn(objects)[0]?.spec.template.spec.containers ?? []
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) {
    const { path } = container[probe].httpGet
    const { status, text } = await pod.requests('').request('GET', path)
    assert.deepEqual([status, text], [200, 'ok'], probe)
  }
}

test('the status listener of the agent and of the syncer has the paths of their probes and metrics', async () => {
  const ping = { name: 'ping', failure: () => undefined }
  const listener = await servePages('127.0.0.1:0', { livez: [ping], readyz: [ping] }, openMetrics())
  after(() => listener.close(0))
  for (const path of ['/livez', '/readyz', '/metrics'])
    assert.equal((await fetch(`${listener.url}${path}`)).status, 200, path)
})
