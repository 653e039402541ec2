// The comparison with a foreign server: it authenticates by client certificates, and namespaces must be created.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { ConfigMap } from '../../src/vcluster/sync/kinds.ts'
import { startOwnCluster } from '../support/cluster-process.ts'
import { exec } from '../support/exec.ts'

const program = join(import.meta.dirname, '../../bench/compare.ts')
const small = ['--seconds', '0.1', '--rounds', '1', '--objects', '30', '--watchers', '5', '--events', '10']

test('ConfigMaps are created in a new namespace and deleted with it, with a client certificate', async () => {
  const [cluster, directory] = [await startOwnCluster(), mkdtempSync(join(tmpdir(), 'platform-compare-foreign-'))]
  const inner = JSON.parse(readFileSync(cluster.kubeconfig, 'utf8')).clusters[0].cluster.server as string
  const front = await startFront(inner)
  try {
    const file = join(directory, 'kubeconfig')
    writeFileSync(file, front.kubeconfig)
    const { code, stdout, stderr } = await exec(process.execPath, [program, '--kubeconfig', file, ...small], {
      timeout: 120_000,
    })
    assert.equal(code, 0, stderr)
    assert.equal(stdout.match(/^.{16} ours .* theirs .* ratio [\d.]+$/gm)?.length, 6, stdout)
    assert.doesNotMatch(stdout, /errors/)
    assert.match(stdout, /^load generator: node;/m)
    assert.equal(front.made.length, 1)
    assert.deepEqual([...front.namespaces], [])
    assert.deepEqual((await cluster.resources.list(ConfigMap, {})).items, [])
  } finally {
    front.close()
    await cluster.close()
    rmSync(directory, { recursive: true })
  }
})

/** The checks of a Kubernetes server: a certificate is required, and so is an existing namespace. */
async function startFront(inner: string) {
  const authority = makeAuthority(Date.now())
  const [own, client] = ['127.0.0.1', 'bench'].map(name => issueCertificate(authority, [name], Date.now()))
  const namespaces = new Set<string>()
  const made: string[] = []
  const options = { cert: own?.certificate, key: own?.key, requestCert: true, rejectUnauthorized: false }
  const respond = async (asked: IncomingMessage, answer: ServerResponse) => {
    const end = (status: number) => answer.writeHead(status, { 'Content-Type': 'application/json' }).end('{}')
    if (!(asked.socket as TLSSocket).getPeerCertificate().raw) return void end(401)
    const { method = '', url = '' } = asked
    const [, name = '', below = ''] = /^\/api\/v1\/namespaces\/?([\w-]*)([^?]*)/.exec(url) ?? []
    if (url === '/api/v1/namespaces' && method === 'POST') {
      let text = ''
      for await (const chunk of asked) text += chunk
      made.push(JSON.parse(text).metadata.name)
      namespaces.add(made.at(-1) as string)
      return void end(201)
    }
    if (name && !namespaces.has(name)) return void end(404)
    if (name && !below) {
      if (method === 'DELETE') namespaces.delete(name)
      return void end(200)
    }
    const headers = { ...asked.headers, authorization: 'Bearer any' }
    const passed = request(inner + url, { method, headers }, response => {
      answer.writeHead(response.statusCode ?? 500, response.headers)
      // A watch is open before anything happens.
      answer.flushHeaders()
      response.pipe(answer)
    })
    answer.on('close', () => passed.destroy())
    passed.on('error', () => answer.destroy())
    asked.pipe(passed)
  }
  const server = createServer(options, (asked, answer) => void respond(asked, answer))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const base64 = (text = '') => Buffer.from(text).toString('base64')
  const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const kubeconfig = JSON.stringify({
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [
      { name: 'c', cluster: { server: address, 'certificate-authority-data': base64(authority.certificate) } },
    ],
    users: [
      {
        name: 'u',
        user: { 'client-certificate-data': base64(client?.certificate), 'client-key-data': base64(client?.key) },
      },
    ],
  })
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { kubeconfig, namespaces, made, close }
}
