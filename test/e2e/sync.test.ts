// The program `platform vcluster sync` between two clusters: once, dry, on and on, with
// patches, in several replicas; and what it says when it cannot.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import type { Resource } from '../../src/api/object.ts'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { ConfigMap, Event, Lease, Secret } from '../../src/vcluster/sync/kinds.ts'
import { hostName, shortName } from '../../src/vcluster/sync/names.ts'
import { endpoints, openCluster, people, sideBySide, until } from '../support/cluster.ts'
import { killProgram, type Started, startProgram } from '../support/cluster-process.ts'
import { exec } from '../support/exec.ts'
import { kubeconfigOf } from '../support/kubeconfig.ts'

const root = join(import.meta.dirname, '../..')
const program = join(root, 'bin/platform.js')
const license = join(root, 'examples/development.license')
const mark = 'vcluster.platform.sh'
const directory = mkdtempSync(join(tmpdir(), 'platform-sync-'))

function write(name: string, text: string): string {
  const file = join(directory, name)
  writeFileSync(file, text)
  return file
}

/** Two clusters of a test's own, and the program between them; `vc` lives in the namespace `team`. */
async function open(t: TestContext) {
  const [virtual, host] = await Promise.all([openCluster(), openCluster()])
  const running: Started[] = []
  t.after(async () => {
    for (const { child } of running) await killProgram(child)
    await Promise.all([virtual.close(), host.close()])
  })
  const [v, h] = [people(virtual), people(host)]
  const [one, two] = [virtual, host].map(({ server, kubeconfig }) =>
    write(`${new URL(server).port}.kubeconfig`, kubeconfig),
  )
  const args = (file: string, more: readonly string[]) => [
    ...[program, 'vcluster', 'sync', '-f', file, '--name', 'vc', '--namespace', 'team'],
    ...['--virtual-kubeconfig', one as string, '--host-kubeconfig', two as string, ...more],
  ]
  return {
    v,
    h,
    virtualKubeconfig: one as string,
    once: (file: string, more: readonly string[] = ['--once']) =>
      exec(process.execPath, args(file, more), { timeout: 60_000 }),
    start: async (file: string, more: readonly string[] = []) => {
      const started = await startProgram(
        args(file, more),
        /^platform: syncing endpoints of vc to team(?:, status at )?(\S*)$/m,
      )
      running.push(started)
      return started
    },
    make: async (name: string, over: { [key: string]: unknown } = {}) => {
      await v.service(name)
      await v.create(endpoints(name, over))
    },
    onHost: (name: string) => h.get({ namespace: 'team', name: hostName(name, 'default', 'vc') }),
  }
}
const at = (name: string) => ({ namespace: 'default', name })
const annotation = (object: Resource | undefined, key: string) => object?.metadata.annotations?.[key]

describe('platform vcluster sync', { timeout: 300_000, concurrency: sideBySide(3) }, () => {
  after(() => rmSync(directory, { recursive: true }))

  test('--dry-run prints the writes and writes nothing; --once writes them; a second run has nothing to do', async t => {
    const { make, once, onHost } = await open(t)
    await make('once')
    const file = write('once.yaml', '')
    const dry = await once(file, ['--dry-run'])
    assert.equal(dry.code, 0, dry.stderr)
    assert.match(dry.stdout, /# create endpoints team\/once-x-default-x-vc on the host\napiVersion: v1\n/)
    assert.match(dry.stdout, /- ip: 10\.0\.0\.1/)
    assert.equal(await onHost('once'), undefined)
    const wet = await once(file)
    assert.equal(wet.code, 0, wet.stderr)
    assert.ok(await onHost('once'))
    const again = await once(file, ['--dry-run'])
    assert.deepEqual([again.code, again.stdout], [0, ''])
  })

  test('--once reports failures, with exit code 1', async t => {
    const { make, once, onHost } = await open(t)
    // Loopback no API server takes itself.
    await make('refused', { subsets: [{ addresses: [{ ip: '239.0.0.1' }], ports: [{ port: 1 }] }] })
    const { code, stderr } = await once(write('refused.yaml', ''))
    assert.equal(code, 1)
    assert.match(
      stderr,
      /platform: default\/refused: AddressRefused: subsets\[0\]\.addresses\[0\]\.ip is a multicast or broadcast address/,
    )
    assert.equal(await onHost('refused'), undefined)
    const allowed = 'sync: {toHost: {endpoints: {allowedCIDRs: [239.0.0.0/8]}}}\n'
    assert.equal((await once(write('allowed.yaml', allowed))).code, 0)
    assert.ok(await onHost('refused'))
  })

  test('--once counts the objects of each kind that it created, updated, deleted, left unchanged or could not sync', async t => {
    const { v, h, make, once } = await open(t)
    const file = write(
      'report.yaml',
      'sync: {toHost: {endpoints: {patches: [{path: \'metadata.annotations["cm"]\', reference: {apiVersion: v1, kind: ConfigMap}}]}}}\n',
    )
    await v.create({ ...ConfigMap.sample, metadata: { name: 'cm', namespace: 'default' } } as Resource)
    await make('kept', { metadata: { annotations: { cm: 'cm' } } })
    await make('edited')
    await make('gone')
    const flags = ['--once', '--license', license, '-o', 'json']
    const counts = async (code: number) => {
      const result = await once(file, flags)
      assert.equal(result.code, code, result.stderr)
      return JSON.parse(result.stdout)
    }
    const none = { created: 0, updated: 0, deleted: 0, unchanged: 0, failed: 0 }
    const host = { side: 'host', kind: 'Endpoints', ...none }
    const copy = { side: 'host', kind: 'ConfigMap', ...none }
    assert.deepEqual(await counts(0), {
      complete: true,
      objects: [
        { ...copy, created: 1 },
        { ...host, created: 3 },
      ],
      failures: [],
    })
    assert.deepEqual((await counts(0)).objects, [
      { ...copy, unchanged: 1 },
      { ...host, unchanged: 3 },
    ])
    await v.remove(at('gone'))
    await v.patch(at('edited'), { subsets: [{ addresses: [{ ip: '10.9.9.9' }], ports: [{ port: 1 }] }] })
    await make('refused', { subsets: [{ addresses: [{ ip: '239.0.0.1' }], ports: [{ port: 1 }] }] })
    const third = await counts(1)
    assert.deepEqual(third.objects, [
      { ...copy, unchanged: 1 },
      { ...host, updated: 1, deleted: 1, unchanged: 1, failed: 1 },
      // The condition.
      { ...host, side: 'virtual', updated: 1 },
    ])
    assert.deepEqual([third.failures[0].name, third.failures[0].reason], ['default/refused', 'AddressRefused'])
    assert.ok(await h.get({ namespace: 'team', name: hostName('kept', 'default', 'vc') }))
    const text = await once(file, ['--once', '--license', license])
    assert.match(
      text.stdout,
      /^SIDE +KIND +CREATED +UPDATED +DELETED +UNCHANGED +FAILED\nhost +ConfigMap +0 +0 +0 +1 +0\nhost +Endpoints +0 +0 +0 +2 +1\n$/,
    )
    const wrong = await once(file, ['--dry-run', '-o', 'json', '--license', license])
    assert.deepEqual([wrong.code, wrong.stdout], [2, ''])
    assert.match(wrong.stderr, /-o requires --once/)
  })

  test('in multi-namespace mode an object of the host stays unchanged; --once names it with exit code 1', async t => {
    const { h, make, once } = await open(t)
    await make('payments', { metadata: { annotations: { 'cert-manager.io/issuer': 'tenant', note: 'tenant' } } })
    const theirs = { namespace: 'team-default', name: 'payments' }
    await h.create(
      endpoints('payments', { subsets: [{ addresses: [{ ip: '10.7.7.7' }], ports: [{ port: 1 }] }] }, 'team-default'),
    )
    const before = await h.get(theirs)
    const mapped = 'sync: {toHost: {namespaces: {enabled: true, mappings: {byName: {default: team-default}}}}}\n'
    const file = write('mapped.yaml', mapped)
    const { code, stderr } = await once(file)
    assert.equal(code, 1, stderr)
    assert.match(
      stderr,
      /default\/payments: HostObjectForeign: team-default\/payments on the host was not created by this syncer: it has no metadata/,
    )
    assert.deepEqual(await h.get(theirs), before)
    await h.remove(theirs)
    assert.equal((await once(file)).code, 0)
    const { annotations = {} } = (await h.get(theirs))?.metadata ?? {}
    assert.deepEqual([annotations['note'], annotations['cert-manager.io/issuer']], ['tenant', undefined])
  })

  test('patches need a license; with one they run, references are synced, and a changed file is reloaded', async t => {
    const { v, h, make, once, start, onHost } = await open(t)
    const file = write(
      'patched.yaml',
      `sync:
  toHost:
    endpoints:
      patches:
      - path: metadata.annotations["example.org/tier"]
        expression: '"host-" + value'
        reverseExpression: 'value.replace(/^host-/, "")'
      - path: metadata.annotations["example.org/settings"]
        reference: {apiVersion: v1, kind: ConfigMap}
`,
    )
    const refused = await once(file)
    assert.equal(refused.code, 2)
    assert.match(refused.stderr, /patched\.yaml:4:7: sync\.toHost\.endpoints\.patches requires a license/)

    const annotations = { 'example.org/tier': 'gold', 'example.org/settings': 'settings' }
    await v.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'settings', namespace: 'default' },
      data: { a: 'b' },
    } as Resource)
    await make('patched', { metadata: { annotations } })
    const running = await start(file, ['--license', license])
    assert.match(running.printed(), /development license/)
    const object = await until('the patched object', () => onHost('patched'))
    assert.equal(annotation(object, 'example.org/tier'), 'host-gold')
    const short = shortName('settings', 'default', 'vc')
    assert.equal(annotation(object, 'example.org/settings'), short)
    const copy = await until('the ConfigMap', () => h.get({ namespace: 'team', name: short }, ConfigMap))
    assert.deepEqual((copy as unknown as { data: object }).data, { a: 'b' })

    const hostAt = { namespace: 'team', name: hostName('patched', 'default', 'vc') }
    await h.patch(hostAt, { metadata: { annotations: { 'example.org/tier': 'host-silver' } } })
    await until('the edit, reversed', async () => {
      const back = await v.get(at('patched'))
      return annotation(back, 'example.org/tier') === 'silver'
    })

    writeFileSync(file, readFileSync(file, 'utf8').replace('"host-" + value', '"next-" + value'))
    await until(
      'every object again',
      async () => annotation(await onHost('patched'), 'example.org/tier') === 'next-silver',
    )
    await killProgram(running.child, 'SIGTERM')
    assert.equal(running.child.exitCode, 0)
  })

  test('a failing patch affects only its object, and is reported by condition, Event, metric and log', async t => {
    const { v, make, start, onHost } = await open(t)
    const file = write(
      'failing.yaml',
      'sync: {toHost: {endpoints: {patches: [{path: "metadata.annotations.bad", expression: "value.no.such"}]}}}\n',
    )
    await make('failing', { metadata: { annotations: { bad: 'yes' } } })
    await make('fine')
    const { found, printed } = await start(file, ['--license', license, '--listen', '127.0.0.1:0'])
    await until('the good one', () => onHost('fine'))
    const told = await until('the condition', async () => annotation(await v.get(at('failing')), `${mark}/conditions`))
    assert.match(told, /"reason":"PatchFailed","message":"patch 0 at metadata\.annotations\.bad: /)
    await until('the Event', async () =>
      ((await v.list(Event)) as unknown as { reason: string; involvedObject: { name: string } }[]).some(
        event => event.reason === 'PatchFailed' && event.involvedObject.name === 'failing',
      ),
    )
    assert.equal(await onHost('failing'), undefined)
    const metrics = await (await fetch(`${found}/metrics`)).text()
    assert.match(metrics, /vcluster_sync_patch_errors_total\{patch="0"\} [1-9]/)
    assert.match(metrics, /vcluster_sync_objects\{state="failed"\} 1/)
    assert.match(metrics, /vcluster_sync_lag_seconds_count [1-9]/)
    assert.match(
      printed(),
      /"reason":"PatchFailed","msg":"patch 0 at metadata\.annotations\.bad: .*; see sync\.toHost\.endpoints\.patches\[0\]\.expression"/,
    )
    // The tenant did not write the configuration, and readers of the log need not know its secrets.
    const events = JSON.stringify(await v.list(Event))
    assert.doesNotMatch(told + events + printed(), /no\.such/)
    const page = readFileSync(join(root, 'docs/SYNCER.md'), 'utf8')
    for (const [, name] of metrics.matchAll(/^# TYPE (\S+)/gm))
      assert.ok(page.includes(`| \`${name}\` |`), `${name} is not on the page`)
    assert.equal(await (await fetch(`${found}/livez`)).text(), 'ok')
    assert.equal((await fetch(`${found}/readyz?verbose`)).status, 200)
  })

  test('a Secret of the host is imported only if allowed, and never a token', async t => {
    const { v, h, make, once } = await open(t)
    const file = write(
      'import.yaml',
      'sync: {toHost: {endpoints: {patches: [{path: "metadata.annotations.key", reference: {apiVersion: v1, kind: Secret}}]}}}\n',
    )
    const name = shortName('key', 'default', 'vc')
    const account = { 'kubernetes.io/service-account.name': 'default' }
    const secret = (type: string) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: 'team', ...(type === 'Opaque' ? {} : { annotations: account }) },
      type,
      data: { a: 'Yg==' },
    })
    await make('import', { metadata: { annotations: { key: 'key' } } })
    await h.create(secret('kubernetes.io/service-account-token') as unknown as Resource)
    const licensed = ['--once', '--license', license]
    const token = await once(file, [...licensed, '--import-allow', 'Secret'])
    assert.equal(token.code, 1)
    assert.match(token.stderr, /ReferenceFailed: .* never imported/)
    await h.remove({ namespace: 'team', name }, Secret)
    await h.create(secret('Opaque') as unknown as Resource)
    assert.match((await once(file, licensed)).stderr, /--import-allow does not list it/)
    assert.equal((await once(file, [...licensed, '--import-allow', `Secret/${name}`])).code, 0)
    const imported = await v.get(at('key'), Secret)
    assert.deepEqual((imported as unknown as { data: object }).data, { a: 'Yg==' })
    assert.equal(annotation(imported, `${mark}/imported-from`), `team/${name}`)
  })

  test('a Secret is synced to the host only if the host has none, and never one that the host would fill', async t => {
    const { v, h, make, once } = await open(t)
    const file = write(
      'push.yaml',
      'sync: {toHost: {secrets: {enabled: true}, endpoints: {patches: [{path: "metadata.annotations.key", reference: {apiVersion: v1, kind: Secret}}]}}}\n',
    )
    const name = shortName('own', 'default', 'vc')
    const secret = (at: object, more: object) =>
      ({ apiVersion: 'v1', kind: 'Secret', metadata: at, data: { a: 'Yg==' }, ...more }) as unknown as Resource
    await make('push', { metadata: { annotations: { key: 'own' } } })
    const theirs = { name: 'own', namespace: 'default' }
    const account = { annotations: { 'kubernetes.io/service-account.name': 'default' } }
    await v.create(secret({ ...theirs, ...account }, { type: 'kubernetes.io/service-account-token' }))
    const licensed = ['--once', '--license', license]
    const filled = await once(file, licensed)
    assert.equal(filled.code, 1)
    assert.match(filled.stderr, /is not synced to the host/)
    await v.remove(theirs, Secret)
    await v.create(secret(theirs, { type: 'Opaque' }))
    await h.create(secret({ name, namespace: 'team' }, { type: 'Opaque', data: { a: 'b3Bz' } }))
    const taken = await once(file, licensed)
    assert.equal(taken.code, 1)
    assert.match(taken.stderr, /was not created by this syncer: it has no metadata of the syncer/)
    const kept = (await h.get({ namespace: 'team', name }, Secret)) as unknown as { data: object }
    assert.deepEqual(kept.data, { a: 'b3Bz' })
  })

  test('one of two replicas works; when it stops the other takes over', async t => {
    const { v, h, make, start, onHost } = await open(t)
    await make('led')
    const file = write('led.yaml', '')
    const more = ['--leader-elect', '--listen', '127.0.0.1:0']
    const replicas = [await start(file, more), await start(file, more)]
    await until('the object', () => onHost('led'))
    const leads = async ({ found }: Started) =>
      /vcluster_sync_leader 1/.test(await (await fetch(`${found}/metrics`)).text())
    const [first, second] = replicas as [Started, Started]
    assert.deepEqual([await leads(first), await leads(second)], [true, false])
    assert.equal((await fetch(`${second.found}/readyz`)).status, 200)
    const lease = { namespace: 'team', name: 'vcluster-sync-vc' }
    const before = (await h.get(lease, Lease))?.spec?.['holderIdentity']
    await killProgram(first.child, 'SIGTERM') // lets the lease go
    await until('the second', () => leads(second))
    assert.notEqual((await h.get(lease, Lease))?.spec?.['holderIdentity'], before)
    await v.patch(at('led'), { subsets: [{ addresses: [{ ip: '10.0.0.8' }], ports: [{ port: 1 }] }] })
    await until('the change', async () => (await onHost('led'))?.subsets?.[0]?.addresses?.[0]?.ip === '10.0.0.8')
  })

  test('all problems of configuration and kubeconfigs are reported together, with exit code 2', async () => {
    const bad = write('bad.yaml', 'sync: {toHost: {endpoints: {enable: true}}}\n')
    const args = ['vcluster', 'sync', '-f', bad, '--name', 'x', '--namespace', 'y', '--timeout', 'soon']
    const files = ['--virtual-kubeconfig', join(directory, 'nowhere'), '--host-kubeconfig', write('broken', 'a: [')]
    const { code, stderr } = await exec(process.execPath, [program, ...args, ...files])
    assert.equal(code, 2)
    assert.match(stderr, /--timeout: "soon" must be a duration such as 90s, 15m or 2h/)
    assert.match(stderr, /bad\.yaml:1:\d+: unknown key sync\.toHost\.endpoints\.enable; did you mean enabled\?/)
    assert.match(stderr, /cannot read .*nowhere: there is no such file/)
    assert.match(stderr, /broken is not a kubeconfig: line 1/)
    const outside = await exec(process.execPath, [program, ...args.slice(0, -2), ...files.slice(0, 2)])
    assert.match(outside.stderr, /not running in a pod with a service account/)
  })

  test('an unreachable server, or one with a wrong certificate, is retried until the time is up, and logged; other servers are not retried', async t => {
    const { virtualKubeconfig } = await open(t)
    const file = write('away.yaml', '')
    const away = write('away.kubeconfig', kubeconfigOf('http://127.0.0.1:9'))
    const common = ['vcluster', 'sync', '-f', file, '--name', 'x', '--namespace', 'y', '--once', '--timeout', '3']
    const sides = ['--virtual-kubeconfig', virtualKubeconfig, '--host-kubeconfig', away]
    const one = await exec(process.execPath, [program, ...common, ...sides])
    assert.equal(one.code, 1)
    assert.match(one.stderr, /cannot reach http:\/\/127\.0\.0\.1:9: connection refused/)
    assert.match(one.stderr, /timed out after 3 s: cannot reach http:\/\/127\.0\.0\.1:9: connection refused/)

    const now = Date.now()
    const pair = issueCertificate(makeAuthority(now), ['127.0.0.1'], now)
    const { createServer } = await import('node:https')
    const server = createServer({ cert: pair.certificate, key: pair.key }, (_, response) => response.end())
    t.after(() => server.close())
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const wrong = write('wrong.kubeconfig', kubeconfigOf(`https://127.0.0.1:${port}`))
    const two = await exec(process.execPath, [program, ...common, ...sides.slice(0, 3), wrong])
    assert.equal(two.code, 1)
    assert.match(
      two.stderr,
      /its certificate is not trusted: certificate-authority-data must contain the CA that signed it/,
    )

    const { createServer: createPlain } = await import('node:http')
    const noSuch = JSON.stringify({ kind: 'Status', apiVersion: 'v1', reason: 'NotFound', code: 404 })
    const stranger = createPlain((_, response) => response.writeHead(404).end(noSuch))
    t.after(() => stranger.close())
    await new Promise<void>(resolve => stranger.listen(0, '127.0.0.1', resolve))
    const elsewhere = `http://127.0.0.1:${(stranger.address() as { port: number }).port}`
    const other = write('other.kubeconfig', kubeconfigOf(elsewhere))
    const three = await exec(process.execPath, [
      program,
      ...common,
      '--virtual-kubeconfig',
      other,
      '--host-kubeconfig',
      other,
    ])
    assert.equal(three.code, 1, three.stderr)
    assert.match(three.stderr, /at http:\S+ has no (endpoints|services) \(v1\): it must be a Kubernetes API server/)
    assert.doesNotMatch(three.stderr, /not done within/)
  })
})
