// `platform vcluster sync` with a kubeconfig of a tenant: it cannot access the machine of the syncer.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { type Cluster, endpoints, openCluster, people } from '../support/cluster.ts'
import { exec } from '../support/exec.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')
const directory = mkdtempSync(join(tmpdir(), 'platform-tenant-'))
after(() => rmSync(directory, { recursive: true }))

let files = 0
function write(text: string, mode = 0o600): string {
  const file = join(directory, `file-${files++}`)
  writeFileSync(file, text, { mode })
  return file
}

type Parts = { readonly cluster?: object; readonly user?: object }
/** The kubeconfig of a cluster with other fields in it. */
function changed(kubeconfig: string, { cluster = {}, user }: Parts): string {
  const config = JSON.parse(kubeconfig)
  Object.assign(config.clusters[0].cluster, cluster)
  if (user) config.users[0].user = user
  return write(JSON.stringify(config))
}

/** A plugin that leaves a file when it runs, and gives a credential. */
function plugin(token = 'any'): { readonly user: object; readonly hasRun: () => boolean } {
  const trace = join(directory, `ran-${files++}`)
  const credential = { apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: { token } }
  const command = write(`#!/bin/sh\ntouch ${trace}\necho '${JSON.stringify(credential)}'\n`, 0o700)
  const { apiVersion } = credential
  return { user: { exec: { apiVersion, command, interactiveMode: 'Never' } }, hasRun: () => existsSync(trace) }
}

async function open(t: TestContext) {
  const clusters = await Promise.all([openCluster(), openCluster()])
  const [virtual, host] = clusters as [Cluster, Cluster]
  t.after(() => Promise.all(clusters.map(one => one.close())))
  await people(virtual).service('web')
  await people(virtual).create(endpoints('web'))
  const once = (sides: { readonly virtual?: string; readonly host?: string }, ...more: string[]) =>
    exec(
      process.execPath,
      [
        ...[program, 'vcluster', 'sync', '-f', write(''), '--name', 'vc', '--namespace', 'team', '--once'],
        ...['--virtual-kubeconfig', sides.virtual ?? write(virtual.kubeconfig)],
        ...['--host-kubeconfig', sides.host ?? write(host.kubeconfig), ...more],
      ],
      { timeout: 60_000 },
    )
  return { virtual, host, once }
}

/** A server of a tenant that writes down what it is sent. */
async function listening(t: TestContext): Promise<{ readonly url: string; readonly seen: IncomingMessage[] }> {
  const seen: IncomingMessage[] = []
  const server = createServer((request, response) => {
    seen.push(request)
    response.writeHead(500).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

describe('platform vcluster sync with a tenant’s kubeconfig', { timeout: 120_000, concurrency: 2 }, () => {
  test('an exec plugin does not run; the message names user and command, and the exit code is 2', async t => {
    const { virtual, once } = await open(t)
    const { user, hasRun } = plugin()
    const { code, stderr } = await once({ virtual: changed(virtual.kubeconfig, { user }) })
    assert.equal(hasRun(), false)
    assert.equal(code, 2, stderr)
    assert.match(stderr, /user "me" runs the command ".*" \(exec\).*--allow-exec virtual/)
  })

  test('with --allow-exec virtual it runs, and the sync works', async t => {
    const { virtual, host, once } = await open(t)
    const { user, hasRun } = plugin()
    const { code, stderr } = await once({ virtual: changed(virtual.kubeconfig, { user }) }, '--allow-exec', 'virtual')
    assert.equal(code, 0, stderr)
    assert.equal(hasRun(), true)
    assert.ok(await people(host).get({ namespace: 'team', name: 'web-x-default-x-vc' }))
  })

  test('a plugin and a token file of the host’s own kubeconfig work without a flag', async t => {
    const { host, once } = await open(t)
    const { user, hasRun } = plugin()
    const ran = await once({ host: changed(host.kubeconfig, { user }) })
    assert.equal(ran.code, 0, ran.stderr)
    assert.equal(hasRun(), true)
    const tokenFile = write('any')
    assert.equal((await once({ host: changed(host.kubeconfig, { user: { tokenFile } }) })).code, 0)
  })

  test('a token file of the host is never sent to the tenant’s server', async t => {
    const { virtual, once } = await open(t)
    const { url, seen } = await listening(t)
    const tokenFile = write('canary-of-the-host')
    const file = changed(virtual.kubeconfig, { cluster: { server: url }, user: { tokenFile } })
    const { code, stderr } = await once({ virtual: file }, '--timeout', '2s')
    assert.equal(code, 2, stderr)
    assert.match(stderr, /user "me" names the file ".*" \(tokenFile\).*--allow-files virtual/)
    assert.deepEqual(
      seen.map(({ headers }) => headers.authorization),
      [],
    )
  })

  test('the syncer does not connect to a proxy of the tenant', async t => {
    const { virtual, once } = await open(t)
    const { url, seen } = await listening(t)
    const { code, stderr } = await once({ virtual: changed(virtual.kubeconfig, { cluster: { 'proxy-url': url } }) })
    assert.equal(code, 2, stderr)
    assert.match(stderr, /cluster "here" sets a proxy \(proxy-url\)/)
    assert.equal(seen.length, 0)
  })

  test('--import-allow, which sends Secrets to the tenant’s server, requires a verified certificate', async t => {
    const { virtual, once } = await open(t)
    const unverified = [
      { server: 'https://vc.example.org', 'insecure-skip-tls-verify': true },
      { server: 'http://vc.example.org' },
    ]
    for (const cluster of unverified) {
      const file = changed(virtual.kubeconfig, { cluster })
      const { code, stderr } = await once({ virtual: file }, '--import-allow', 'Secret/x')
      assert.equal(code, 2, stderr)
      assert.match(stderr, /--import-allow would send Secrets of the host to https?:\/\/vc\.example\.org/)
    }
    const loopback = await once({}, '--import-allow', 'Secret/x')
    assert.equal(loopback.code, 0, loopback.stderr)
  })
})
