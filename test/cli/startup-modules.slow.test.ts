// The modules that a command loads: loading little keeps the start fast. bench/cli.ts measures the times.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type CliHome, openHome } from '../support/cli-home.ts'
import { closeAll } from '../support/close-all.ts'
import { startServer } from '../support/server.ts'

/** Printed at the end on standard error: the paths of loaded files and the loaded modules of Node. */
const telling = `import { registerHooks } from 'node:module'
const files = []
registerHooks({ load: (url, context, next) => { files.push(url); return next(url, context) } })
process.on('exit', () => console.error('loaded ' + [...files, ...process.moduleLoadList].join(' ')))
`

async function loadedBy(home: CliHome, ...args: string[]): Promise<string> {
  const hook = join(home.directory, 'telling.mjs')
  writeFileSync(hook, telling)
  const { stderr } = await home.exec(args, { imports: [hook] })
  const [, loaded = ''] = /loaded (.*)/.exec(stderr) ?? []
  assert.match(loaded, /run-command\.ts/, stderr)
  return loaded
}

test('a command loads only what it needs: no YAML, no other kinds, and no web APIs for fetch', async () => {
  const [server, home] = [await startServer({ storage: 'memory' }), await openHome()]
  try {
    await home.signIn(server)
    await home.ok('set secret db a=-', { stdin: 'x' })
    const version = await loadedBy(home, 'version')
    assert.doesNotMatch(version, /src\/(kinds|client|kubeconfig|http)\/|node_modules|internal\/deps\/undici|_tls_wrap/)
    for (const args of [['whoami'], ['get', 'secret', 'db.a'], ['run', '-s', 'db', '--', 'true']]) {
      const loaded = await loadedBy(home, ...args)
      const tooMuch =
        /node_modules\/(?!undici\/)|undici\/(index|lib\/(web|api|mock|cache|interceptor))|src\/kinds\/index/
      assert.doesNotMatch(loaded, tooMuch, args.join(' '))
      assert.doesNotMatch(loaded, /internal\/deps\/undici\/undici/, args.join(' '))
      assert.match(loaded, /node_modules\/undici\/lib\/dispatcher\/pool\.js/, args.join(' '))
    }
  } finally {
    await closeAll(home.close, server.stop)
  }
})
