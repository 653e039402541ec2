// Rotation of the master key with replicas: every replica gets the key first, then the leader re-encrypts with ordinary updates.

import assert from 'node:assert/strict'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readKeyRing } from '../../src/storage/key-ring.ts'
import { exec } from '../support/exec.ts'
import { startReplicas } from '../support/replicas.ts'
import type { Server } from '../support/server.ts'
import { eventually } from '../support/wire.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')
const secrets = '/apis/management.platform.sh/v1/namespaces/default/sharedsecrets'

test('the master key is rotated while replicas serve, and the old key can be removed', async t => {
  const { servers, args, close } = await startReplicas({ replicas: 2 })
  t.after(close)
  const [one, two] = servers as [Server, Server]
  const ring = (server: Server) => join(server.directory, 'master.key')
  const textOf = (server: Server) => readFileSync(ring(server), 'utf8')
  const share = () => {
    if (textOf(one) !== textOf(two)) cpSync(ring(one), ring(two))
  }
  const storage = async (command: string) => {
    const all = [program, 'storage', command, '--data', one.directory, ...args]
    const { code, stdout, stderr } = await exec(process.execPath, all, { timeout: 60_000 })
    assert.equal(code, 0, stderr)
    return stdout
  }
  const changes = (server: Server) => server.said().split('key ring changed').length - 1
  const data = (name: string) => ({ value: btoa(name) })
  const names = Array.from({ length: 10 }, (_, index) => `secret-${index}`)
  for (const name of names)
    assert.equal(
      (await one.request('POST', secrets, { body: { metadata: { name }, spec: { data: data(name) } } })).status,
      201,
    )
  const { body: list } = await two.request('GET', secrets)
  const modified = new Set<string>()
  const watching = (async () => {
    for await (const { type, object } of two.watch(
      `${secrets}?watch=1&resourceVersion=${list.metadata.resourceVersion}`,
    )) {
      if (type === 'MODIFIED') modified.add(object.metadata.name)
      if (modified.size === names.length) break
    }
  })()

  assert.match(
    await storage('rotate-key'),
    /added the key [0-9a-f]+, which only decrypts\. Copy this file to every replica/,
  )
  share()
  await eventually('both know the key', async () => [one, two].every(server => changes(server) === 1))
  const [rotating] = [storage('rotate-key')]
  await eventually('the ring has another first key', async () => {
    share()
    return [one, two].every(server => changes(server) === 2)
  })
  assert.match(await rotating, /all values are encrypted with it/)
  await watching
  assert.match(await storage('status'), /all values are encrypted with the first key/)

  const [first] = readKeyRing(textOf(one))
  const line = `${first?.id} ${Buffer.from(first?.key ?? []).toString('base64')}\n`
  for (const server of [one, two]) writeFileSync(ring(server), line)
  await eventually('both use one key', async () => [one, two].every(server => changes(server) === 3))
  await two.restart()
  for (const server of [one, two])
    for (const name of names)
      assert.deepEqual((await server.request('GET', `${secrets}/${name}`)).body.spec.data, data(name))
})

test('etcd holds no secret in plaintext: neither data, nor keys, nor the CA', async t => {
  const { servers, etcd, close } = await startReplicas({ replicas: 1 })
  t.after(close)
  const [server] = servers as [Server]
  const canary = 'canary-4f1d2c'
  const spec = { data: { value: btoa(canary) } }
  await server.request('POST', secrets, { body: { metadata: { name: 'hidden' }, spec } })
  const { body: made } = await server.request('POST', '/apis/management.platform.sh/v1/ownedaccesskeys', {
    body: { metadata: { name: 'hidden' }, spec: { user: 'ada' } },
  })
  const body = JSON.stringify({ key: btoa('\0'), range_end: btoa('\0') })
  const response = await fetch(`${etcd.endpoints[0]}/v3/kv/range`, { method: 'POST', body })
  const { kvs } = (await response.json()) as { kvs: { key: string; value: string }[] }
  const stored = kvs.map(({ value }) => Buffer.from(value, 'base64').toString('latin1')).join('\n')
  assert.ok(kvs.some(({ key }) => atob(key).endsWith('/default/hidden')))
  const authority = readFileSync(join(server.directory, 'ca.key'), 'utf8').split('\n')[1] as string
  for (const secret of [canary, btoa(canary), made.spec.key, authority, server.adminKey])
    assert.ok(!stored.includes(secret), 'a secret is stored in plaintext')
})
