// The package as it is published: packed, unpacked elsewhere, without sources, beside nothing but the dependencies it names.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { openHome } from '../support/cli-home.ts'

const root = join(import.meta.dirname, '../..')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const program = 'elsewhere/node_modules/platform-plane/bin/platform.js'
// Of a server it starts itself: these two files hold the key that it makes.
const home = await openHome({ program, mayHold: /^data\/admin\.(key|kubeconfig)$/ })
const work = home.directory
const place = join(work, 'elsewhere')
const installed = join(place, 'node_modules/platform-plane')

/** As `npm install` lays it out; the registry is left alone, and what is not named as a dependency is not there. */
before(async () => {
  const copy = join(work, 'copy')
  mkdirSync(copy)
  for (const name of [
    'src',
    'bin',
    'build',
    'package.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'README.md',
    'LICENSE',
  ])
    cpSync(join(root, name), join(copy, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  const packed = await home.by(['npm', 'pack', '--silent'], { cwd: copy, timeout: 120_000 })
  assert.equal(packed.code, 0, packed.stdout + packed.stderr)
  const [tarball = ''] = readdirSync(copy).filter(name => name.endsWith('.tgz'))
  mkdirSync(installed, { recursive: true })
  const unpacked = await home.by(['tar', '-xzf', join(copy, tarball), '-C', installed, '--strip-components=1'])
  assert.equal(unpacked.code, 0, unpacked.stderr)
  for (const name of Object.keys(manifest.dependencies)) {
    mkdirSync(dirname(join(place, 'node_modules', name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(place, 'node_modules', name))
  }
  writeFileSync(join(place, 'package.json'), '{"type":"module"}')
})
after(() => home.close())

test('it contains the built program, its types and no sources or tests', () => {
  const files = readdirSync(installed, { recursive: true, encoding: 'utf8' })
  for (const wanted of [
    'bin/platform.js',
    'dist/cmd/platform.js',
    'dist/client/library.d.ts',
    'dist/console/index.html',
    'LICENSE',
    'README.md',
  ])
    assert.ok(files.includes(wanted), wanted)
  assert.deepEqual(
    files.filter(name => /^(src|test)\b|\.test\.|(?<!\.d)\.ts$/.test(name)),
    [],
  )
})

test('the program prints its version, and what to do without a setup', async () => {
  assert.equal((await home.exec('version')).stdout, `${manifest.version}\n`)
  assert.match((await home.exec('run --help')).stdout, /^Run a program/)
  assert.equal((await home.exec('vcluster defaults')).code, 0)
})

test('the server starts, the command line signs in to it, and the client library has types and works', async () => {
  const serve = ['serve', '--data', join(work, 'data'), '--https', '127.0.0.1:0', '--http', '127.0.0.1:0']
  const server = home.start(serve)
  try {
    let printed = ''
    const tell = (chunk: Buffer) => {
      printed += chunk
    }
    for (const stream of [server.stdout, server.stderr]) stream?.on('data', tell)
    while (!/is ready: /.test(printed)) {
      const ended = await Promise.race([
        once(server.stdout ?? server, 'data'),
        once(server, 'exit').then(() => 'ended'),
      ])
      if (ended === 'ended') assert.fail(printed)
    }
    const [, https = '', http = ''] = /is ready: (\S+) (\S+)/.exec(printed) ?? []
    const key = readFileSync(join(work, 'data/admin.key'), 'utf8').trim()
    const env = { PLATFORM_SERVER: http, PLATFORM_ACCESS_KEY: key }
    const who = await home.exec('whoami -o name', {
      env: { ...env, PLATFORM_SERVER: https, PLATFORM_CA_FILE: join(work, 'data/ca.crt') },
    })
    assert.equal(who.stdout, 'admin\n', who.stderr)
    assert.match(await (await fetch(`${http}/console/`)).text(), /<div id="console">/)
    writeFileSync(
      join(place, 'mine.ts'),
      `import { connect } from 'platform-plane/client'
import { Team } from 'platform-plane/kinds'
declare const process: { env: { [name: string]: string | undefined } }
const { of } = connect(process.env['PLATFORM_SERVER'] ?? '', process.env['PLATFORM_ACCESS_KEY'] ?? '')
const team = await of(Team).create({ metadata: { name: 'packed' }, spec: { users: ['ada'] } })
const users: readonly string[] | undefined = team.spec?.users
// @ts-expect-error a team has no such field
void team.spec?.usres
console.log(users)
`,
    )
    const options = ['--module', 'nodenext', '--target', 'esnext', '--strict', '--lib', 'esnext,dom', '--types', '']
    const tsc = await home.by([join(root, 'node_modules/.bin/tsc'), ...options, '--skipLibCheck', 'mine.ts'], {
      cwd: place,
      timeout: 60_000,
    })
    assert.equal(tsc.code, 0, tsc.stdout)
    const ran = await home.by([process.execPath, 'mine.js'], { cwd: place, env })
    assert.equal(ran.stdout, "[ 'ada' ]\n", ran.stderr)
  } finally {
    const gone = once(server, 'exit')
    server.kill('SIGTERM')
    await gone
  }
})
