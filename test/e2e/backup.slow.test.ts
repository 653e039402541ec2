// Backup while clients write, restore elsewhere, verify: the programs themselves, over real files and servers.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'
import { base, group, openWire, type Wire } from '../support/wire.ts'

const program = new URL('../../bin/platform.js', import.meta.url).pathname
const json = { 'content-type': 'application/json' }
const merge = { 'content-type': 'application/merge-patch+json' }
const secret = 'a-value-that-only-the-key-ring-opens'
const collections = [
  `${group}/teams`,
  `${group}/sharedsecrets`,
  `${group}/ownedaccesskeys`,
  `${base}/apis/rbac.authorization.k8s.io/v1/clusterroles`,
]

describe('backup, restore and verify', { timeout: 120_000 }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'platform-backup-'))
  const data = join(scratch, 'data')
  const file = join(scratch, 'platform.backup')
  let server: Server
  let wire: Wire
  before(async () => {
    mkdirSync(data)
    server = await startServer({ directory: data })
    wire = openWire(server)
    for (const name of ['web', 'db', 'one', 'two'])
      await post('teams', { metadata: { name }, spec: { users: ['ada'] } })
    await post('namespaces/default/sharedsecrets', {
      metadata: { name: 'db' },
      spec: { data: { password: Buffer.from(secret).toString('base64') } },
    })
    await wire(`${group}/teams/db`, { method: 'DELETE' })
  })
  after(async () => {
    await server.stop()
    rmSync(scratch, { recursive: true, force: true })
  })
  const post = async (path: string, body: object) =>
    assert.equal(
      (await wire(`${group}/${path}`, { method: 'POST', headers: json, body: JSON.stringify(body) })).code,
      201,
    )
  const run = (words: string, input?: Buffer) =>
    spawnSync(process.execPath, [program, ...words.split(' ')], { cwd: scratch, ...(input ? { input } : {}) })
  /** Does not block this process, because clients keep writing. */
  const running = (words: string) =>
    new Promise<number | null>(resolve =>
      spawn(process.execPath, [program, ...words.split(' ')], { cwd: scratch, stdio: 'ignore' }).on('exit', resolve),
    )
  /** A place to restore to, with the key ring in it. */
  const place = (name: string) => {
    mkdirSync(join(scratch, name))
    cpSync(join(data, 'master.key'), join(scratch, name, 'master.key'))
    return name
  }
  /** A server on what was restored. Its administrator still has the key; the directory has not. */
  const startRestored = async (name: string) => {
    cpSync(join(data, 'admin.key'), join(scratch, name, 'admin.key'))
    return startServer({ directory: join(scratch, name) })
  }
  /** Every object as clients see it. The revision of a list belongs to the store and keeps growing. */
  const dump = async (ask: Wire) => {
    const pages = []
    // Asking is itself a use of the administrator's key.
    for (const path of collections)
      pages.push(
        (await ask(path)).json.items.map((item: object) =>
          JSON.stringify(item).replace(/,"status":\{"lastActivity":"[^"]*"\}/, ''),
        ),
      )
    return pages
  }
  const newest = async (ask: Wire) => Number((await ask(`${group}/teams`)).json.metadata.resourceVersion)

  describe('the restored directory', () => {
    let shown: unknown
    let revision: number
    let words: string
    let other: Server
    before(async () => {
      shown = await dump(wire)
      revision = await newest(wire)
      const made = run(`backup ${file} --data data`)
      assert.equal(made.status, 0, String(made.stderr))
      assert.match(String(made.stderr), new RegExp(`objects at revision ${revision}; .*master\\.key decrypts it`))
      const restored = run(`restore ${file} --data ${place('restored')}`)
      words = String(restored.stderr)
      assert.equal(restored.status, 0, words)
    })
    after(() => other?.stop())

    test('has the file modes of a first start, verifies, and restore says where to get the administrator’s key', () => {
      const modes = (name: string) =>
        ['ca.crt', 'ca.key', 'platform.db', 'master.key'].map(one => [
          one,
          statSync(join(scratch, name, one)).mode & 0o777,
        ])
      assert.deepEqual(modes('restored'), modes('data'))
      const directory = join(scratch, 'restored')
      assert.deepEqual(words.split('\n').slice(1), [
        `platform: access keys are still valid; the administrator key is not in the backup: copy it to ${directory}/admin.key`,
        `platform: the next platform serve --data ${directory} then writes admin.kubeconfig; to create a new key: platform admin reset --data ${directory}`,
        '',
      ])
      const checked = run('verify restored')
      assert.equal(checked.status, 0, String(checked.stdout) + String(checked.stderr))
    })

    test('equals the backup byte by byte; its revisions are unused, and it has the same certificate', async () => {
      other = await startRestored('restored')
      assert.match(other.output(), /Wrote admin\.kubeconfig again/)
      assert.doesNotMatch(other.output(), /First start/)
      const kubeconfig = readFileSync(join(other.directory, 'admin.kubeconfig'), 'utf8')
      assert.equal(kubeconfig.includes(other.adminKey), true)
      const ask = openWire({ ...other, ca: server.ca })
      assert.deepEqual(await dump(ask), shown)
      const after = await newest(ask)
      assert.ok(after >= revision + 1_000_000_000, String(after))
      const late = await ask(`${group}/teams?watch=1&resourceVersion=${revision + 5}`)
      assert.match(late.text, /"code":410/)
      const written = await ask(`${group}/teams/web`, {
        method: 'PATCH',
        headers: merge,
        body: '{"spec":{"users":["eve"]}}',
      })
      // A controller may have written in between.
      assert.ok(Number(written.json.metadata.resourceVersion) > after)
    })
  })

  test('a backup has mode 0600, and does not replace an existing file without --replace', () => {
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const again = run(`backup ${file} --data data`)
    assert.deepEqual([again.status, /already exists/.test(String(again.stderr))], [2, true])
    assert.equal(run(`backup ${file} --data data --replace`).status, 0)
  })

  test('a backup contains one revision, despite concurrent writes', async () => {
    let isOver = false
    const writeBoth = async (count: number) => {
      for (const name of ['one', 'two'])
        await wire(`${group}/teams/${name}`, {
          method: 'PATCH',
          headers: merge,
          body: `{"spec":{"displayName":"${count}"}}`,
        })
    }
    const write = async () => {
      for (let count = 1; !isOver; count++) await writeBoth(count)
    }
    // The first backup may be taken before anything else is written.
    await writeBoth(0)
    const writing = write()
    const turns = ['a', 'b', 'c']
    try {
      for (const turn of turns) assert.equal(await running(`backup ${turn}.backup --data data`), 0)
    } finally {
      isOver = true
      await writing
    }
    for (const turn of turns) {
      assert.equal(await running(`restore ${turn}.backup --data ${place(`meanwhile-${turn}`)}`), 0)
      const other = await startRestored(`meanwhile-${turn}`)
      const ask = openWire({ ...other, ca: server.ca })
      const counts = []
      for (const name of ['one', 'two'])
        counts.push(Number((await ask(`${group}/teams/${name}`)).json.spec.displayName))
      await other.stop()
      const ahead = (counts[0] as number) - (counts[1] as number)
      assert.ok(ahead === 0 || ahead === 1, `one before the other: ${counts.join(', ')}`)
    }
  })

  test('it works through pipes, and neither the backup nor the restored directory shows a secret', async () => {
    const made = run('backup - --data data')
    assert.equal(made.status, 0, String(made.stderr))
    for (const shown of ['"kind"', 'web', 'PRIVATE KEY', secret, Buffer.from(secret).toString('base64')])
      assert.equal(made.stdout.includes(shown), false, shown)
    assert.equal(run(`restore - --data ${place('piped')}`, made.stdout).status, 0)
    for (const name of readdirSync(join(scratch, 'piped'))) {
      const bytes = readFileSync(join(scratch, 'piped', name))
      assert.equal(bytes.includes(secret) || bytes.includes(Buffer.from(secret).toString('base64')), false, name)
    }
  })

  test('a target that is not empty is rejected and unchanged; so is one without its key ring', () => {
    const before = readFileSync(join(data, 'ca.crt'))
    const full = run(`restore ${file} --data data`)
    assert.deepEqual([full.status, /is not empty/.test(String(full.stderr))], [2, true], String(full.stderr))
    assert.deepEqual(readFileSync(join(data, 'ca.crt')), before)
    const bare = run(`restore ${file} --data nowhere`)
    assert.match(String(bare.stderr), /the key ring is not in the backup: copy it to .*nowhere\/master\.key/)
    assert.deepEqual([bare.status, existsSync(join(scratch, 'nowhere'))], [2, false])
  })

  test('a backup that was changed, truncated, extended, or has another key ring is rejected, and nothing is left behind', () => {
    const whole = readFileSync(file)
    const changed = (at: number) => {
      const bytes = Buffer.from(whole)
      bytes[at] = (bytes[at] as number) ^ 1
      return bytes
    }
    const piece = whole.indexOf(10) + 1
    const target = place('spoiled')
    const spoiled: readonly (readonly [string, Buffer])[] = [
      ['nothing', Buffer.alloc(0)],
      ['no backup', Buffer.from('hello\n')],
      ['its head', changed(30)],
      ['the size of a piece', changed(piece + 1)],
      ['a piece', changed(piece + 100)],
      ['its last byte', changed(whole.length - 1)],
      ['cut', whole.subarray(0, -10)],
      ['cut after its head', whole.subarray(0, piece)],
      ['grown', Buffer.concat([whole, Buffer.from('x')])],
    ]
    for (const [what, bytes] of spoiled) {
      const { status, stderr } = run(`restore - --data ${target}`, bytes)
      assert.equal(status, 1, `${what}: ${stderr}`)
      assert.deepEqual(readdirSync(join(scratch, target)), ['master.key'], what)
    }
    writeFileSync(join(scratch, 'other.key'), `abc ${Buffer.alloc(32, 7).toString('base64')}\n`)
    const foreign = run(`restore ${file} --data ${target} --master-key other.key`)
    assert.match(
      String(foreign.stderr),
      /is encrypted with the key [0-9a-f]+, which is not in the key ring \(keys: abc\)/,
    )
  })

  test('without enough disk space restore reports it, and leaves nothing behind', () => {
    const target = place('tight')
    const words = `ulimit -f 32; exec '${process.execPath}' '${program}' restore ${file} --data ${target}`
    const { status, stderr } = spawnSync('bash', ['-c', words], { cwd: scratch })
    assert.notEqual(status, 0, String(stderr))
    assert.deepEqual(readdirSync(join(scratch, target)), ['master.key'])
  })

  test('verify names an undecryptable value, and a directory without a database', () => {
    writeFileSync(
      join(scratch, 'wrong.key'),
      readFileSync(join(data, 'master.key'), 'utf8').replace(/ \S{43}=/, ` ${Buffer.alloc(32, 9).toString('base64')}`),
    )
    assert.equal(run(`restore ${file} --data ${place('sealed')}`).status, 0)
    const { status, stdout } = run('verify sealed --master-key wrong.key')
    assert.equal(status, 1)
    assert.match(String(stdout), /sharedsecrets.*default\/db|db.*cannot be decrypted/s)
    assert.equal(run('verify nowhere').status, 2)
    rmSync(join(scratch, 'sealed/master.key'))
    assert.match(String(run('verify sealed').stderr), /master\.key is missing/)
  })
})
