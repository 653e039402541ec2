// A tampered database file: the server reports swapped, edited or unencrypted values, and everything else works (D28).

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { must, ours, refused, secrets, soon } from '../access/people.ts'
import { type Server, startServer } from '../support/server.ts'
import { changeStored } from '../support/stored.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const copies = `${ours}/namespaces/p-web/projectsecrets`
const merge = { 'content-type': 'application/merge-patch+json' }
const program = join(import.meta.dirname, '../../bin/platform.js')
const broken = ['swapped', 'other', 'edited', 'unsealed', 'emptied']
const waiting = ['waiting-foreground', 'waiting-orphan']

type Stored = { spec: { data: unknown } }

/** Changes what is stored of an object, in the file itself. */
function tamper(directory: string, name: string, change: (stored: Stored) => unknown): void {
  changeStored(directory, { bucket: 'sharedsecrets', name }, text => {
    const stored = JSON.parse(text) as Stored
    return text.replace(JSON.stringify(stored.spec.data), () => JSON.stringify(change(stored)))
  })
}

describe('a tampered encrypted value', () => {
  let server: Server
  before(async () => {
    server = await startServer()
    for (const name of [...broken, ...waiting, 'whole', 'source'])
      await must(
        server.request('POST', secrets(), { body: { metadata: { name }, spec: { data: { a: base64(name) } } } }),
      )
    const body = { metadata: { name: 'copy' }, spec: { sharedSecretRef: { name: 'source' } } }
    await must(server.request('POST', copies, { body }))
    await soon('it is copied', async () => {
      return (await must(server.request('GET', `${copies}/copy`))).spec.data?.a === base64('source')
    })
    await server.restart(async () => {
      const { directory } = server
      let first: unknown
      tamper(directory, 'other', ({ spec }) => {
        first = spec.data
        return spec.data
      })
      tamper(directory, 'swapped', ({ spec }) => {
        const mine = spec.data
        tamper(directory, 'other', () => mine)
        return first
      })
      const flip = (text: string) => `${text.slice(0, -9)}${text.at(-9) === 'A' ? 'B' : 'A'}${text.slice(-8)}`
      tamper(directory, 'edited', ({ spec }) => flip(String(spec.data)))
      tamper(directory, 'unsealed', () => ({ a: base64('planted') }))
      tamper(directory, 'emptied', () => '')
      for (const name of [...waiting, 'source']) tamper(directory, name, ({ spec }) => flip(String(spec.data)))
    })
  })
  after(() => server.stop())

  const failures = async () => {
    const { text } = await server.request('GET', '/../../metrics')
    return Number(/^platform_seal_failures_total\{resource="sharedsecrets[^}]*\} (\d+)$/m.exec(text)?.[1] ?? 0)
  }

  test('responds 500 with the reason, and is counted and logged', async () => {
    for (const name of broken) {
      const counted = await failures()
      const why = new RegExp(
        `^spec\\.data of sharedsecrets\\.management\\.platform\\.sh default/${name} cannot be decrypted`,
      )
      await refused(server.request('GET', `${secrets()}/${name}`), 500, why)
      assert.ok((await failures()) > counted)
      const alarm = new RegExp(`ALARM: spec\\.data of \\S+ default/${name} cannot be decrypted`)
      await soon('it is logged', async () => {
        await setTimeout(10)
        return alarm.test(server.output())
      })
    }
    assert.ok(!server.output().includes('sealed:v1:'), 'no ciphertext in the log')
  })

  test('is not overwritten: a change gets the same error', async () => {
    for (const name of broken) {
      await refused(
        server.request('PATCH', `${secrets()}/${name}`, { body: { spec: { data: null } }, headers: merge }),
        500,
        /cannot be decrypted/,
      )
      await refused(server.request('GET', `${secrets()}/${name}/history`), 500, /cannot be decrypted/)
    }
  })

  test('affects nothing else: other objects can be read, listed, watched and written', async () => {
    const whole = await must(server.request('GET', `${secrets()}/whole`))
    assert.deepEqual(whole.spec.data, { a: base64('whole') })
    const listed = await must(server.request('GET', secrets()))
    assert.equal(listed.items.length, broken.length + waiting.length + 2)
    for (const item of listed.items) {
      if (item.metadata.name === 'whole') {
        assert.deepEqual(item.spec.data, { a: base64('whole') })
        continue
      }
      assert.equal(item.spec.data, undefined)
      const condition = item.status.conditions.find((one: { type: string }) => one.type === 'Readable')
      assert.equal(condition.status, 'False')
      assert.match(condition.message, /cannot be decrypted/)
    }
    const seen = new Set<string>()
    for await (const { object } of server.watch(`${secrets()}?watch=1&resourceVersion=0`)) {
      seen.add(object.metadata.name)
      if (seen.size === broken.length + waiting.length + 2) break
    }
    await must(
      server.request('PATCH', `${secrets()}/whole`, { body: { spec: { data: { b: 'Yg==' } } }, headers: merge }),
    )
    await must(server.request('POST', secrets('elsewhere'), { body: { metadata: { name: 'new' } } }))
  })

  test('of a source is reported by the copy, which keeps its data', async () => {
    await soon('the condition says so', async () => {
      const { spec, status } = await must(server.request('GET', `${copies}/copy`))
      const synced = status.conditions.find((one: { type: string }) => one.type === 'Synced')
      return synced.reason === 'SourceUnreadable' && spec.data.a === base64('source')
    })
  })

  test('can be deleted, at once or later, and recreated', async () => {
    for (const name of broken) {
      await must(server.request('DELETE', `${secrets()}/${name}`))
      await must(server.request('POST', secrets(), { body: { metadata: { name }, spec: { data: { a: 'YQ==' } } } }))
      assert.deepEqual((await must(server.request('GET', `${secrets()}/${name}`))).spec.data, { a: 'YQ==' })
    }
    for (const policy of ['Foreground', 'Orphan']) {
      const name = `waiting-${policy.toLowerCase()}`
      await must(server.request('DELETE', `${secrets()}/${name}?propagationPolicy=${policy}`))
      await soon(`the ${policy} deletion comes to its end`, async () => {
        const { items } = await must(server.request('GET', secrets()))
        return items.every((one: { metadata: { name: string } }) => one.metadata.name !== name)
      })
    }
    const held = await server.request('DELETE', `${secrets()}/source?gracePeriodSeconds=60`)
    assert.equal(held.status, 200, held.text)
    assert.ok(held.body.metadata.deletionTimestamp)
    assert.ok(!held.text.includes('sealed:v1:'), held.text)
    await refused(server.request('GET', `${secrets()}/source`), 500, /cannot be decrypted/)
  })
})

describe('a start with the wrong key ring is rejected, with the id of the key', () => {
  let server: Server
  let right: string
  before(async () => {
    server = await startServer()
    await must(server.request('POST', secrets(), { body: { metadata: { name: 'a' }, spec: { data: { a: 'YQ==' } } } }))
    right = readFileSync(join(server.directory, 'master.key'), 'utf8')
  })
  after(() => server.stop())

  const line = (id: string) => `${id} ${randomBytes(32).toString('base64')}\n`
  const start = (ring: string) => {
    if (ring) writeFileSync(join(server.directory, 'master.key'), ring)
    else rmSync(join(server.directory, 'master.key'))
    const args = [program, 'serve', '--data', server.directory, '--https', 'off', '--http', '127.0.0.1:0']
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { timeout: 60_000, encoding: 'utf8' })
    assert.equal(status, 1, stdout + stderr)
    return stderr
  }

  test('if the ring or the key is missing, or another key has its id', async () => {
    const [, id = ''] = /^([a-z0-9]+) /m.exec(right) ?? []
    await server.restart(async () => {
      assert.match(
        start(line('other')),
        new RegExp(`is encrypted with the key "${id}", which it does not have \\(it has other\\)`),
      )
      // In this case no object is damaged, so the message does not suggest to delete one.
      assert.match(
        start(line(id)),
        new RegExp(`^platform: the key ring of .*: its key "${id}" does not decrypt .*\\n$`),
      )
      assert.match(start(''), new RegExp(`master\\.key is missing.*restore it, with the key "${id}"`))
      writeFileSync(join(server.directory, 'master.key'), right)
    })
    assert.deepEqual((await must(server.request('GET', `${secrets()}/a`))).spec.data, { a: 'YQ==' })
  })
})
