// The units of deploy/systemd, read by the real tools of systemd in a root directory of their own.

import assert from 'node:assert/strict'
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { after, suite, test } from 'node:test'
import { notRun } from '../support/missing-tool.ts'
import { findSystemd, type Systemd } from '../support/systemd.ts'

const files = join(import.meta.dirname, '../../deploy/systemd')
const units = globSync('*.service', { cwd: files }).toSorted()
const instances = units.map(name => name.replace('@.', '@my-vcluster.'))
const programs = ['platform', 'platform-gateway', 'platform-sync']
/** In tenths: 2.5 of 10. */
const highestExposure = 25

const systemd = await findSystemd()
if (systemd) declare(systemd)
else notRun('systemd')

/** The part of a unit that is equal in all of them. */
function sandboxOf(name: string): string {
  const text = readFileSync(join(files, name), 'utf8')
  return text.slice(text.indexOf('# Sandbox.'), text.indexOf('[Install]'))
}

test('all units have the same sandbox', () => {
  assert.equal(units.length, 3)
  for (const name of units) assert.equal(sandboxOf(name), sandboxOf('platform.service'), name)
  assert.match(sandboxOf('platform.service'), /^ProtectSystem=strict$/m)
})

function declare({ run, units: ofSystemd }: Systemd): void {
  suite('the tools of systemd accept them', () => {
    const root = mkdtempSync(join(tmpdir(), 'platform-systemd-'))
    after(() => rmSync(root, { recursive: true }))
    // As docs/INSTALL.md installs them.
    install(ofSystemd, 'usr/lib/systemd/system')
    for (const name of units) install(join(files, name), `etc/systemd/system/${name}`)
    install(join(files, 'master-key.conf'), 'etc/systemd/system/platform.service.d/master-key.conf')
    install(join(files, 'platform.sysusers'), 'usr/lib/sysusers.d/platform.conf')
    install(join(files, 'platform.tmpfiles'), 'usr/lib/tmpfiles.d/platform.conf')
    mkdirSync(join(root, 'usr/local/bin'), { recursive: true })
    writeFileSync(join(root, 'usr/local/bin/platform'), '#!/bin/sh\n')
    chmodSync(join(root, 'usr/local/bin/platform'), 0o755)

    function install(from: string, to: string): void {
      mkdirSync(dirname(join(root, to)), { recursive: true })
      cpSync(from, join(root, to), { recursive: true })
    }

    test('systemd-analyze verify finds nothing', async () => {
      const { code, stdout, stderr } = await run('systemd-analyze', [
        'verify',
        '--man=no',
        `--root=${root}`,
        ...instances,
      ])
      assert.equal(code, 0, stderr)
      // An unknown key is only a warning.
      assert.equal(stdout + stderr, '')
    })

    test('the exposure of each unit is at most 2.5', async () => {
      const flags = ['security', '--offline=yes', '--no-pager', `--threshold=${highestExposure}`, `--root=${root}`]
      for (const name of instances) {
        const { code, stdout, stderr } = await run('systemd-analyze', [...flags, name])
        assert.equal(code, 0, stdout.trim().split('\n').at(-1) + stderr)
        assert.match(stdout, /Overall exposure level for \S+: [0-2]\.\d/)
      }
    })

    test('sysusers creates a user for each program, and tmpfiles its directory', async () => {
      if (process.getuid?.() !== 0) return assert.ok(!process.env['CI'], 'CI needs root for this test')
      assert.equal((await run('systemd-sysusers', [`--root=${root}`])).code, 0)
      const made = await run('systemd-tmpfiles', ['--create', `--root=${root}`])
      assert.equal(made.code, 0, made.stderr)
      const groups = readFileSync(join(root, 'etc/group'), 'utf8')
      const users = readFileSync(join(root, 'etc/passwd'), 'utf8')
      for (const name of programs) {
        const [, gid] = new RegExp(`^${name}:x:(\\d+):`, 'm').exec(groups) ?? []
        assert.match(users, new RegExp(`^${name}:x:\\d+:${gid}:.*:/usr/sbin/nologin$`, 'm'))
        const { mode, uid, gid: owner } = statSync(join(root, 'etc', name))
        assert.deepEqual([mode & 0o777, uid, owner], [0o750, 0, Number(gid)], name)
      }
      for (const name of units) {
        const [, user = ''] = /^User=(.*)$/m.exec(readFileSync(join(files, name), 'utf8')) ?? []
        assert.ok(programs.includes(user), `${basename(name)}: sysusers does not create ${user}`)
      }
    })
  })
}
