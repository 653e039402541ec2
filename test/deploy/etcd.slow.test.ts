// Three pods of the overlay etcd on a real etcd with client certificates: one installation, also without one of the pods.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { makeKeyRing } from '../../src/storage/key-ring.ts'
import { makeClientCertificate } from '../support/client-certificate.ts'
import { findEtcd, startEtcd } from '../support/etcd.ts'
import { findKubectls } from '../support/kubectl.ts'
import { notRun } from '../support/missing-tool.ts'
import { eventually } from '../support/wire.ts'
import { build } from './built.ts'
import { openPod } from './pod.ts'

const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'
const [kubectl] = (await findKubectls()).toReversed()
if (!kubectl) notRun('kubectl ≥ 1.29')
else if (!(await findEtcd())) notRun('etcd')
else
  test('three pods share one installation, and two of them continue without the third', async t => {
    const scratch = mkdtempSync(join(tmpdir(), 'platform-deploy-etcd-'))
    t.after(() => rmSync(scratch, { recursive: true }))
    const at = (name: string) => join(scratch, name)
    const read = (name: string) => readFileSync(at(name), 'utf8')
    const authority = makeAuthority(Date.now())
    const member = issueCertificate(authority, ['127.0.0.1'], Date.now())
    for (const [name, pair] of Object.entries({ ca: authority, member })) {
      writeFileSync(at(`${name}.crt`), pair.certificate)
      writeFileSync(at(`${name}.key`), pair.key)
    }
    await makeClientCertificate(scratch, 'client', 'ca')
    const etcd = await startEtcd({ tls: { ca: at('ca.crt'), cert: at('member.crt'), key: at('member.key') } })
    t.after(() => etcd.close())
    const client = { ca: read('ca.crt'), cert: read('client.crt'), key: read('client.key') }
    // A server that starts before the members have a leader ends with an error.
    await eventually('etcd is healthy', () => isHealthy(`${etcd.endpoints[0]}/health`, client))
    const secrets = {
      'platform-master-key': { 'master.key': makeKeyRing(size => randomBytes(size)) },
      'platform-etcd': {
        endpoints: etcd.endpoints.join(','),
        'ca.crt': client.ca,
        'tls.crt': client.cert,
        'tls.key': client.key,
      },
    }
    const objects = await build(kubectl.file, { overlay: 'etcd', components: [] })
    const pods = await Promise.all([0, 1, 2].map(index => openPod(objects, secrets, `platform-${index}`)))
    t.after(() => Promise.all(pods.map(pod => pod.close())))
    // All at once, as podManagementPolicy says.
    await Promise.all(pods.map(pod => pod.start()))
    const [first, second, third] = pods
    assert.ok(first && second && third)
    const issued = await second.run('admin', 'emergency-key', '--reason', 'first start')
    assert.equal(issued.code, 0, issued.stderr)
    const key = issued.stdout.trim()
    const create = (pod: typeof first, name: string) =>
      pod.requests(key).request('POST', teams, { body: { metadata: { name } } })
    assert.equal((await create(first, 'one')).status, 201)
    assert.equal((await third.requests(key).request('GET', `${teams}/one`)).status, 200)
    await third.kill()
    assert.equal((await create(second, 'two')).status, 201)
    assert.equal((await first.requests(key).request('GET', `${teams}/two`)).status, 200)
    await third.start()
    await eventually('the restarted pod has every object', async () => {
      const { status, body } = await third.requests(key).request('GET', teams)
      return status === 200 && body.items.length === 2
    })
    for (const pod of pods) assert.equal(await pod.stop(), 0)
  })

const isHealthy = (url: string, client: { readonly ca: string; readonly cert: string; readonly key: string }) =>
  new Promise<boolean>(resolve => {
    const request = get(url, client, response => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    request.on('error', () => resolve(false))
  })
