// Replicas of an earlier build are replaced one by one by this one, under load: nothing is lost, doubled or out of order, and watches continue.
// platform.tgz is version 0.1.0 as built from commit 21713e60, without the console and type declarations.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { startReplicas } from '../support/replicas.ts'
import type { Server } from '../support/server.ts'
import { eventually } from '../support/wire.ts'

const root = join(import.meta.dirname, '../..')
const teams = '/apis/management.platform.sh/v1/teams'
const writers = 4
const merge = { 'content-type': 'application/merge-patch+json' }

const directory = mkdtempSync(join(tmpdir(), 'platform-release-'))
after(() => rmSync(directory, { recursive: true, force: true }))
execFileSync('tar', ['-xzf', join(root, 'test/fixtures/release-0.1/platform.tgz'), '-C', directory])
symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
const program = join(directory, 'bin/platform.js')

type Team = {
  readonly metadata: { readonly name: string; readonly resourceVersion: string }
  readonly spec?: { readonly displayName?: string }
}

test('a rolling upgrade under load loses nothing', { timeout: 300_000 }, async t => {
  const replicas = await startReplicas({ replicas: 3, begin: { program } })
  after(() => replicas.close())
  const [first] = replicas.servers as [Server]
  const { body: start } = await first.request('GET', teams)
  let isOver = false

  /** The last number of each team that a server acknowledged. */
  const written = new Map<string, number>()
  let failures = 0
  const write = async (id: number) => {
    for (let turn = 0; !isOver; turn++) {
      const name = `team-${id}-${turn % 20}`
      const server = replicas.servers[(id + turn) % 3] as Server
      const number = (written.get(name) ?? 0) + 1
      // Earlier builds store a username without a record of it.
      const spec = { displayName: String(number), username: `alias-${name}` }
      // A request to a replica that is being replaced has no answer. Its effect is unknown, so the same number is written again.
      const send = written.has(name)
        ? server.request('PATCH', `${teams}/${name}`, { headers: merge, body: { spec } })
        : server.request('POST', teams, { body: { metadata: { name }, spec } })
      const { status, text } = await send.catch(() => ({ status: 0, text: '' }))
      if ([200, 201].includes(status) || (status === 409 && !written.has(name) && number === 1))
        written.set(name, number)
      else {
        assert.ok([0, 429, 503, 504].includes(status), `${status} ${text}`)
        failures++
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    }
  }

  /** Follows all changes, on one replica after another. */
  const seen = new Map<string, number>()
  let [version, events, streams] = [start.metadata.resourceVersion as string, 0, 0]
  const watch = async () => {
    for (let turn = 0; !isOver; turn++) {
      const server = replicas.servers[turn % 3] as Server
      streams++
      try {
        for await (const { type, object } of server.watch(
          `${teams}?watch=1&resourceVersion=${version}&timeoutSeconds=3`,
        )) {
          const { metadata, spec } = object as Team
          assert.notEqual(type, 'ERROR', JSON.stringify(object))
          assert.ok(BigInt(metadata.resourceVersion) > BigInt(version), 'no event twice')
          version = metadata.resourceVersion
          const number = Number(spec?.displayName)
          // Conditions change a team without its number.
          assert.ok([0, 1].includes(number - (seen.get(metadata.name) ?? 0)), `${metadata.name} ${number}`)
          assert.equal(type, seen.has(metadata.name) ? 'MODIFIED' : 'ADDED')
          seen.set(metadata.name, number)
          events++
        }
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    }
  }
  const load = Promise.all([...Array.from({ length: writers }, (_, id) => write(id)), watch()])

  const writtenMore = async (server: Server) => {
    const before = [...written.values()].reduce((sum, one) => sum + one, 0)
    await eventually(
      'more is written',
      async () => [...written.values()].reduce((sum, one) => sum + one, 0) > before + 50,
    )
    assert.equal((await server.request('GET', '/readyz')).status, 200)
  }
  for (const server of replicas.servers) {
    await Promise.race([load, writtenMore(server)])
    await Promise.race([load, server.restart()])
  }
  await Promise.race([load, writtenMore(first)])
  isOver = true
  await load

  for (const name of written.keys()) {
    const { status, text } = await first.request('POST', teams, { body: { metadata: { name: `alias-${name}` } } })
    assert.equal(status, 422, text)
  }

  for (const server of replicas.servers) {
    const { items } = (await server.request('GET', teams)).body as { readonly items: readonly Team[] }
    const found = new Map(items.map(({ metadata, spec }) => [metadata.name, Number(spec?.displayName)]))
    for (const [name, number] of written) {
      const now = found.get(name) ?? 0
      // The last write may have had no answer.
      assert.ok(now === number || now === number + 1, `${name}: ${now} is stored, ${number} was acknowledged`)
    }
  }
  const { body } = await first.request('GET', '/version')
  t.diagnostic(
    `${[...written.values()].reduce((sum, one) => sum + one, 0)} writes, ${failures} without an answer or refused, ${events} events in ${streams} watches, now ${body.gitVersion}`,
  )
})
