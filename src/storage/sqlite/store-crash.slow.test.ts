// The SQLite engine with killed processes, and with disks that fail to write.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, afterEach, describe, test } from 'node:test'
import { key } from '../../../test/conformance/store-samples.ts'
import { openDataLock } from '../data-lock.ts'
import { openSqliteStore, type SqliteOptions, type SqliteStore } from './store.ts'

const room = mkdtempSync(join(tmpdir(), 'platform-crash-'))
after(() => rmSync(room, { recursive: true, force: true }))
const scratch = () => join(mkdtempSync(join(room, 'data-')), 'platform.db')
/** Closed after the test even if it fails: an open store keeps the process alive. */
const opened: SqliteStore[] = []
afterEach(() => Promise.all(opened.splice(0).map(store => store.close())))
async function open(options: SqliteOptions): Promise<SqliteStore> {
  const store = await openSqliteStore(options)
  opened.push(store)
  return store
}
/** A child process that prints what it acknowledges. `code` can use `store`, `put` and `say`. */
function child(file: string, code: string, command = [process.execPath]) {
  const source = `
    import { openSqliteStore } from ${JSON.stringify(new URL('./store.ts', import.meta.url).href)}
    const store = await openSqliteStore({ file: ${JSON.stringify(file)}, probeMs: 20 })
    const say = line => process.stdout.write(line + '\\n')
    const put = (name, note = '') => {
      const head = '{"metadata":{"resourceVersion":"'
      const text = Buffer.from(head + '"},"note":"' + note + '"}')
      return store.commit([{ type: 'put', key: { bucket: 'teams.test', namespace: '', name }, value: { text, gap: head.length } }])
    }
    const until = async condition => { while (!condition()) await new Promise(resolve => setTimeout(resolve, 5)) }
    say('open')
    ${code}`
  const script = `${scratch()}.mjs`
  writeFileSync(script, source)
  const [program = '', ...args] = [...command, script]
  const started = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  return { process: started, lines: createInterface(started.stdout)[Symbol.asyncIterator]() }
}

describe('sqlite: crashes', () => {
  test('acknowledged writes survive a SIGKILL, and no write is partial', async () => {
    const file = scratch()
    for (let round = 0; round < 3; round++) {
      const writer = child(
        file,
        `let n = 0
         await Promise.all(Array.from({ length: 8 }, async () => {
           for (;;) { const i = n++; say(i + ' ' + await put('${round}-' + i, 'x'.repeat(2000))) }
         }))`,
      )
      const acknowledged = new Map<string, number>()
      for await (const line of { [Symbol.asyncIterator]: () => writer.lines }) {
        const [name, revision] = line.split(' ')
        if (revision !== undefined) acknowledged.set(`${round}-${name}`, Number(revision))
        if (acknowledged.size === 200) writer.process.kill('SIGKILL')
      }
      const store = await open({ file })
      for (const [name, revision] of acknowledged) assert.equal(store.get(key(name))?.revision, revision)
      for (const { text } of store.list({ bucket: 'teams.test' }).entries) JSON.parse(text.toString())
      assert.equal(store.watch('teams.test', 1).take(1e6).length, store.revision - 1)
      await store.close()
    }
  })

  test('a new directory that cannot be locked is reported with the reason', () => {
    const directory = mkdtempSync(join(room, 'data-'))
    mkdirSync(join(directory, 'lock.pid'))
    assert.throws(() => openDataLock(directory), /^Error: cannot use the data directory .*EISDIR/)
    rmSync(join(directory, 'lock.pid'), { recursive: true })
    openDataLock(directory).close()
  })

  test('a second server on the directory is rejected with the pid of the first, and starts after that was killed', async () => {
    const file = scratch()
    const first = child(file, 'setInterval(() => {}, 1000)')
    await first.lines.next()
    const reason = `the data directory is in use by another platform server or restore (pid ${first.process.pid})`
    await assert.rejects(open({ file }), { message: reason })
    first.process.kill('SIGKILL')
    await once(first.process, 'exit')
    const second = await open({ file })
    await assert.rejects(open({ file }), new RegExp(`pid ${process.pid}`), 'in the same process too')
    await second.close()
    await (await open({ file })).close()
  })
})

/** Fills the disk, checks the rejection, frees space with `free`, and waits for the store to recover by itself. */
const fillAndRecover = (free: string) => `
  import fs from 'node:fs'
  import { execFileSync } from 'node:child_process'
  const acknowledged = []
  let error
  for (let i = 0; error === undefined; i++) {
    await put('n' + i, 'x'.repeat(20_000)).then(() => acknowledged.push('n' + i), e => { error = e })
  }
  const { revision } = store
  say(error.reason + ': ' + error.message)
  say(String(store.failure === error.message && store.revision === acknowledged.length + 1))
  const again = await Promise.allSettled([put('more', 'x'.repeat(20_000)), put('more', 'x'.repeat(20_000))])
  say(again.map(answer => answer.reason?.reason).join())
  ${free}
  await until(() => store.failure === undefined)
  say(String(await put('after', 'x'.repeat(20_000)) - revision))
  say(String(store.count('teams.test') - acknowledged.length))
  await store.close()
  const reopened = await openSqliteStore({ file: process.env.FILE })
  say(String(reopened.revision - revision) + ' ' + (reopened.count('teams.test') - acknowledged.length))
  await reopened.close()
  process.exit()`

describe('sqlite: disks that fail to write', () => {
  const expectRecovery = async (lines: AsyncIterator<string>, first: RegExp) => {
    const said: string[] = []
    for await (const line of { [Symbol.asyncIterator]: () => lines }) said.push(line)
    assert.match(said[1] ?? '', first)
    assert.deepEqual(said.slice(2), ['true', 'unavailable,unavailable', '1', '1', '1 1'])
  }

  const canLimit = spawnSync('prlimit', ['--version']).status === 0
  test('a file size limit: unavailable, nothing half-written, recovers by itself', {
    skip: !canLimit,
  }, async () => {
    const file = scratch()
    const code = fillAndRecover(`execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited:'])`)
    const limited = ['prlimit', '--fsize=300000:unlimited', 'env', `FILE=${file}`, process.execPath]
    await expectRecovery(child(file, code, limited).lines, /^unavailable: cannot read or write the disk/)
  })

  const disk = mkdtempSync(join(room, 'disk-'))
  const own = (run: string) => ['unshare', '-rm', 'sh', '-c', `mount -t tmpfs -o size=1m none "$0" && ${run}`, disk]
  const canMount = spawnSync(own('true')[0] ?? '', own('true').slice(1)).status === 0
  test('a full disk: unavailable, nothing half-written, recovers by itself', { skip: !canMount }, async () => {
    const file = join(disk, 'platform.db')
    const code = fillAndRecover(`fs.rmSync(${JSON.stringify(join(disk, 'ballast'))})`)
    const run = `head -c 500000 /dev/zero > "$0/ballast" && export FILE="$0/platform.db" && exec "$@"`
    await expectRecovery(child(file, code, [...own(run), process.execPath]).lines, /^unavailable: the disk is full/)
  })
})
