// A new key for everything sealed, while the server runs: nothing is lost, nobody notices (D28).

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { must, ours, secrets, soon } from '../access/people.ts'
import { exec } from '../support/exec.ts'
import { notRun } from '../support/missing-tool.ts'
import { type Server, startServer } from '../support/server.ts'
import { openTerminal } from '../support/terminal.ts'

const hasTerminal = (await exec('script', ['--version'])).code === 0
const base64 = (text: string) => Buffer.from(text).toString('base64')
const merge = { 'content-type': 'application/merge-patch+json' }
const copies = `${ours}/namespaces/p-web/projectsecrets`
const program = join(import.meta.dirname, '../../bin/platform.js')

type Ran = { readonly code: number; readonly out: string; readonly err: string }

describe('platform storage', () => {
  let server: Server
  before(async () => {
    server = await startServer()
    for (let index = 0; index < 80; index++) await set('POST', `s${index}`, 'first')
    for (let index = 0; index < 10; index++) await set('PATCH', `s${index}`, 'second')
    await must(
      server.request('POST', copies, {
        body: { metadata: { name: 'copy' }, spec: { sharedSecretRef: { name: 's0' } } },
      }),
    )
    await soon('it is copied', async () => {
      return (await must(server.request('GET', `${copies}/copy`))).spec.data?.a === base64('second s0')
    })
  })
  after(() => server.stop())

  const set = (method: 'POST' | 'PATCH', name: string, text: string) =>
    must(
      server.request(method, method === 'POST' ? secrets() : `${secrets()}/${name}`, {
        body: { metadata: { name }, spec: { data: { a: base64(`${text} ${name}`) } } },
        headers: method === 'POST' ? {} : merge,
      }),
    )
  const run = (...words: string[]): Promise<Ran> =>
    new Promise(resolve =>
      execFile(
        process.execPath,
        [program, 'storage', ...words, '--data', server.directory],
        { timeout: 60_000 },
        (error, out, err) => resolve({ code: error ? Number(error.code ?? 1) : 0, out, err }),
      ),
    )
  const ring = () => readFileSync(join(server.directory, 'master.key'), 'utf8')
  const ids = () => [...ring().matchAll(/^([a-z0-9]+) /gm)].map(match => match[1] as string)
  const objects = async () => {
    const { items } = await must(server.request('GET', secrets()))
    return items.map((one: { metadata: { name: string; resourceVersion: string }; spec: { data: object } }) => [
      one.metadata.name,
      one.metadata.resourceVersion,
      one.spec.data,
    ])
  }

  test('status counts the values per encryption key', async () => {
    const { code, out } = await run('status')
    assert.equal(code, 0)
    assert.match(out, new RegExp(`^${ids()[0]} +encrypts +\\d{2,}$`, 'm'))
    assert.match(out, /all values are encrypted with the first key/)
  })

  test('rotate-key encrypts everything again: same revisions, no events, same values, history included', async () => {
    const [old = ''] = ids()
    const before = await objects()
    const { resourceVersion } = (await must(server.request('GET', secrets()))).metadata
    const rotated = await run('rotate-key')
    assert.equal(rotated.code, 0, rotated.err)
    assert.match(rotated.out, /all values are encrypted with it/)
    assert.equal(rotated.err, '', 'progress is for terminals')
    assert.equal(ids().length, 2)
    assert.equal(ids()[1], old)
    assert.deepEqual(await objects(), before)
    assert.equal((await must(server.request('GET', `${secrets()}/s3/history/1`))).spec.data.a, base64('first s3'))
    const at = `${secrets()}?watch=1&timeoutSeconds=1&resourceVersion=${resourceVersion}`
    for await (const { type } of server.watch(at)) assert.fail(`a watch saw ${type}`)
    const { out } = await run('status')
    assert.match(out, new RegExp(`^${old} +decrypts +0$`, 'm'))
    const { text } = await server.request('GET', '/../../metrics')
    assert.ok(Number(/^platform_resealed_objects_total (\d+)$/m.exec(text)?.[1]) >= 90)
  })

  const atTerminal = () =>
    test('rotate-key shows its progress on a terminal', async () => {
      const command = [process.execPath, program, 'storage', 'rotate-key', '--data', server.directory]
      const { code, text } = await openTerminal(command, process.env, server.directory).ended
      assert.equal(code, 0, text)
      assert.match(text, /\d+ values left to encrypt\r\n(?:.*\r\n)*all values are encrypted with it/)
    })
  if (hasTerminal) void atTerminal()
  else notRun('script')

  test('concurrent writes are neither lost nor encrypted with the old key', async () => {
    const [old = ''] = ids()
    const writing = Promise.all(Array.from({ length: 50 }, (_, index) => set('PATCH', `s${index}`, 'third')))
    const rotated = await run('rotate-key')
    await writing
    assert.equal(rotated.code, 0, rotated.err)
    const found = new Map((await objects()).map(([name, , data]: [string, string, object]) => [name, data]))
    for (let index = 0; index < 80; index++) {
      const text = index < 50 ? 'third' : 'first'
      assert.deepEqual(found.get(`s${index}`), { a: base64(`${text} s${index}`) })
    }
    assert.match((await run('status')).out, new RegExp(`^${old} +decrypts +0$`, 'm'))
  })

  test('the server starts without the old keys afterwards', async () => {
    const [first] = ring()
      .split('\n')
      .filter(line => /^[a-z0-9]/.test(line))
    const before = await objects()
    await server.restart(async () => writeFileSync(join(server.directory, 'master.key'), `${first}\n`))
    assert.deepEqual(await objects(), before)
    assert.equal((await must(server.request('GET', `${secrets()}/s3/history/1`))).spec.data.a, base64('first s3'))
  })

  test('without a server the next start re-encrypts', async () => {
    const before = await objects()
    const [old = ''] = ids()
    await server.restart(async () => {
      const { code, out } = await run('rotate-key')
      assert.equal(code, 0)
      assert.match(out, /no server is running: the next start encrypts everything again/)
      assert.match((await run('status')).out, /\d+ values are not yet encrypted with the first key/)
    })
    await soon('everything is encrypted again', async () =>
      new RegExp(`^${old} +decrypts +0$`, 'm').test((await run('status')).out),
    )
    assert.deepEqual(await objects(), before)
  })

  test('a changed ring that lacks a key in use is rejected, and the server keeps the previous one', async () => {
    const right = ring()
    writeFileSync(join(server.directory, 'master.key'), `lonely ${Buffer.alloc(32).toString('base64')}\n`)
    await soon('it is told', async () => {
      await setTimeout(10)
      return server.output().includes('reloading the key ring failed')
    })
    await set('PATCH', 's0', 'fourth')
    assert.equal((await must(server.request('GET', `${secrets()}/s0`))).spec.data.a, base64('fourth s0'))
    writeFileSync(join(server.directory, 'master.key'), right)
    const database = new DatabaseSync(join(server.directory, 'platform.db'), { readOnly: true })
    const rows = database.prepare("SELECT count(*) AS n FROM log WHERE instr(text, 'sealed:v1:lonely:') > 0").get()
    database.close()
    assert.equal(rows?.['n'], 0)
  })
})
