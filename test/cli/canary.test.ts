// A secret that goes through every command is afterwards nowhere: on no disk, in no log, in no argument of any process, in no message.

import assert from 'node:assert/strict'
import { globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openHome } from '../support/cli-home.ts'
import { startServer } from '../support/server.ts'

const canary = 'canary-7f3e1c9a55d24b'
const written = [canary, Buffer.from(canary).toString('base64').replace(/=+$/, ''), Buffer.from(canary).toString('hex')]

/** Everything below a directory that holds one of these, by name. */
const holding = (directory: string, words: readonly string[]) =>
  globSync('**/*', { cwd: directory })
    .concat(globSync('.*/**/*', { cwd: directory }))
    .filter(name => statSync(join(directory, name)).isFile())
    .filter(name => words.some(word => readFileSync(join(directory, name)).includes(word)))

test('a canary through every command is on no disk, in no log and in no argument', async () => {
  const server = await startServer()
  const home = await openHome()
  try {
    await home.signIn(server)
    const said: string[] = []
    const run = async (args: string | readonly string[], stdin = '') => {
      const { stderr } = await home.exec(args, {
        stdin,
        env: { PLATFORM_PASSPHRASE: 'horse', HISTFILE: join(home.directory, 'history') },
      })
      said.push(stderr)
    }
    await run('set secret canary token=-', canary)
    await run('import secret other -f - --format json', JSON.stringify({ token: canary }))
    await run('import secret broken -f - --format json', `{"token": "${canary}"`)
    await run('import secret broken -f -', `${canary}\n`)
    await run('set secret canary bad/key=-', canary)
    await run('create -f -', `kind: Nothing\nmetadata: {name: ${canary}}\n`)
    await run('get secret canary.token')
    await run('get secret canary --all -o json')
    await run('export secret canary --format shell')
    await run('run -s canary -s other -- true')
    await run('unset secret canary token --yes')
    await run('set secret canary token=-', canary)
    const look =
      'const fs = require("node:fs"); const all = fs.readdirSync("/proc").filter(one => /^\\d+$/.test(one)).flatMap(pid => { try { return [fs.readFileSync("/proc/" + pid + "/cmdline", "utf8")] } catch { return [] } }); console.log(all.length > 1, all.some(one => one.includes(process.env.token)))'
    const seen = await home.exec(['run', '-s', 'canary', '--', process.execPath, '-e', look])
    assert.equal(seen.stdout, 'true false\n', 'no process has it as an argument')
    assert.deepEqual(holding(home.directory, written), [])
    assert.deepEqual(holding(server.directory, written), [])
    for (const text of [...said, server.output()])
      for (const word of written) assert.equal(text.includes(word), false, text)
    assert.deepEqual(holding(home.directory, [server.adminKey]), ['.local/share/platform/keys/127.0.0.1'])
    assert.deepEqual(holding(server.directory, [server.adminKey]).toSorted(), ['admin.key', 'admin.kubeconfig'])
    assert.equal(server.output().includes(server.adminKey), false)
  } finally {
    await home.close()
    await server.stop()
  }
})
