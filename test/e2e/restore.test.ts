// `platform restore` with concurrent users of its directory, and its advice on what to do next.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { startServer } from '../support/server.ts'

const program = new URL('../../bin/platform.js', import.meta.url).pathname

describe('restore', { timeout: 120_000 }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'platform-restore-'))
  const file = join(scratch, 'platform.backup')
  const run = (words: string, input?: Buffer) =>
    spawnSync(process.execPath, [program, ...words.split(' ')], { cwd: scratch, ...(input ? { input } : {}) })
  before(async () => {
    const server = await startServer()
    mkdirSync(join(scratch, 'data'))
    cpSync(join(server.directory, 'master.key'), join(scratch, 'data/master.key'))
    const { status, stderr } = run(`backup ${file} --data ${server.directory}`)
    await server.stop()
    assert.equal(status, 0, String(stderr))
  })
  after(() => rmSync(scratch, { recursive: true, force: true }))
  /** A place to restore to, with the key ring in it. */
  const place = (name: string) => {
    cpSync(join(scratch, 'data'), join(scratch, name), { recursive: true })
    return name
  }
  /** One that waits for the rest of its backup, with its directory begun. */
  const halfRestored = async (t: TestContext, name: string) => {
    const child = spawn(process.execPath, [program, 'restore', '-', '--data', place(name)], { cwd: scratch })
    t.after(() => child.kill('SIGKILL'))
    let said = ''
    child.stderr.setEncoding('utf8').on('data', text => {
      said += text
    })
    const ended = new Promise<number | null>(resolve => child.on('exit', resolve))
    while (!existsSync(join(scratch, name, 'platform.db.incomplete'))) {
      assert.equal(child.exitCode, null, said)
      await setTimeout(10)
    }
    return {
      pid: child.pid,
      end: async () => {
        child.stdin.end(readFileSync(file))
        return { status: await ended, said }
      },
    }
  }

  test('during a restore no server and no other restore can use the directory, and neither changes it', async t => {
    const one = await halfRestored(t, 'both')
    const words = 'serve --data both --https off --http 127.0.0.1:0'
    const serving = spawnSync(process.execPath, [program, ...words.split(' ')], { cwd: scratch, timeout: 60_000 })
    assert.equal(serving.status, 1, String(serving.stdout) + String(serving.stderr))
    assert.match(String(serving.stderr), new RegExp(`the data directory is in use by .*\\(pid ${one.pid}\\)`))
    const other = run('restore - --data both', readFileSync(file))
    assert.equal(other.status, 2)
    assert.match(String(other.stderr), /is not empty/)
    const { status, said } = await one.end()
    assert.equal(status, 0, said)
    assert.equal(run('verify both').status, 0)
    assert.deepEqual(readdirSync(join(scratch, 'both')).toSorted(), [
      'ca.crt',
      'ca.key',
      'lock.db',
      'master.key',
      'platform.db',
    ])
  })

  test('a backup of a newer version is refused with the reason', () => {
    const [head = '', ...rest] = readFileSync(file, 'latin1').split('\n')
    const newer = JSON.stringify({ ...JSON.parse(head), format: 2 })
    const { status, stderr } = run(
      'restore - --data newer --master-key data/master.key',
      Buffer.from([newer, ...rest].join('\n'), 'latin1'),
    )
    assert.equal(status, 1)
    assert.match(
      String(stderr),
      /has format 2, but this version of platform supports formats up to 1: use a newer version/,
    )
  })

  test('a failed restore removes what it created, and nothing else', async t => {
    const one = await halfRestored(t, 'meant')
    writeFileSync(join(scratch, 'meant/ca.key'), 'of somebody else')
    const { status, said } = await one.end()
    assert.equal(status, 1)
    assert.match(said, /another process created .*ca\.key during the restore/)
    assert.deepEqual(readdirSync(join(scratch, 'meant')).toSorted(), ['ca.key', 'master.key'])
    assert.equal(readFileSync(join(scratch, 'meant/ca.key'), 'utf8'), 'of somebody else')
  })

  test('the advice of restore has the same flags: the key ring, and no kubeconfig without HTTPS', () => {
    writeFileSync(join(scratch, 'plain.yaml'), 'apiVersion: config.platform.sh/v1\nkind: ServerConfig\nhttps: "off"\n')
    const flags = '--config plain.yaml --master-key data/master.key'
    const apart = run(`restore ${file} --data apart ${flags}`)
    assert.equal(apart.status, 0, String(apart.stderr))
    const there = join(scratch, 'apart')
    assert.deepEqual(String(apart.stderr).split('\n').slice(1), [
      `platform: access keys are still valid; the administrator key is not in the backup: copy it to ${there}/admin.key`,
      `platform: to create a new key: platform admin reset --data ${there} ${flags}`,
      '',
    ])
    const reset = run(/platform (admin reset .*)/.exec(String(apart.stderr))?.[1] ?? '')
    assert.equal(reset.status, 0, String(reset.stderr))
  })
})
