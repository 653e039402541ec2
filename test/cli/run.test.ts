// `platform run` beyond the environment: files, masks, changes, and an unreachable server.

import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fingerprintOf } from '../../src/cli/login/trust.ts'
import { type CliHome, openHome, signedIn } from '../support/cli-home.ts'
import { openFiu } from '../support/fiu.ts'
import { notRun } from '../support/missing-tool.ts'
import { eventually } from '../support/wire.ts'

const { server, home } = await signedIn()
before(async () => {
  await home.ok('set secret app token=-', { stdin: 'canary-one' })
})

const node = process.execPath
/** Prints the value, and runs until a signal ends it with 9. */
const stay = 'process.on("SIGUSR1", () => process.exit(9)); setInterval(() => {}, 1e6); console.log(process.env.token)'
const reading = (child: ChildProcess) => {
  let text = ''
  child.stdout?.on('data', chunk => {
    text += chunk
  })
  return async (wanted: RegExp) => {
    await eventually('it prints that', async () => wanted.test(text))
  }
}

test('--file writes a value to a private file, not to the environment, and deletes it', async () => {
  const path = join(home.directory, 'token')
  const code = `const fs = require('node:fs'); console.log(fs.readFileSync('${path}', 'utf8'), (fs.statSync('${path}').mode & 0o777).toString(8), process.env.token)`
  const { stdout } = await home.exec(['run', '-s', 'app', '--file', `token=${path}`, '--', node, '-e', code])
  assert.equal(stdout, 'canary-one 600 undefined\n')
  assert.equal(existsSync(path), false)
  assert.match(await home.fails(3, 'run -s app --file other=x -- true'), /"other" not found/)
  const own = join(home.directory, 'own')
  writeFileSync(own, 'mine')
  for (const path of [own, home.directory])
    assert.match(await home.fails(2, ['run', '-s', 'app', '--file', `token=${path}`, '--', 'true']), /already exists/)
  assert.equal(readFileSync(own, 'utf8'), 'mine', 'what was there is left as it is')
  const nowhere = join(home.directory, 'no/where')
  const said = await home.fails(1, ['run', '-s', 'app', '--file', `token=${nowhere}`, '--', 'true'])
  assert.match(said, /the directory does not exist/)
})

test('--file names a secret by itself: a key becomes a file, a whole secret a directory, and nothing is in the environment', async () => {
  await home.ok('set secret tls cert=-', { stdin: 'canary-cert' })
  await home.ok('set secret tls key.pem=-', { stdin: 'canary-key' })
  const [file, directory] = [join(home.directory, 'cert.pem'), join(home.directory, 'tls')]
  const code = `
    const fs = require('node:fs')
    const show = path => [fs.readFileSync(path, 'utf8'), (fs.statSync(path).mode & 0o777).toString(8)].join(' ')
    console.log(show('${file}'))
    console.log((fs.statSync('${directory}').mode & 0o777).toString(8), fs.readdirSync('${directory}').join(','))
    console.log(show('${directory}/cert'), show('${directory}/key.pem'), process.env.cert)`
  const args = ['--file', `tls.cert=${file}`, '--file', `tls=${directory}`, '--', node, '-e', code]
  const { stdout, stderr, code: exit } = await home.exec(['run', ...args])
  assert.equal(exit, 0, stderr)
  assert.equal(stdout, 'canary-cert 600\n700 cert,key.pem\ncanary-cert 600 canary-key 600 undefined\n')
  for (const path of [file, directory]) assert.equal(existsSync(path), false)
})

test('--file of a whole secret leaves the files of the program, and never an existing directory', async () => {
  const directory = join(home.directory, 'mixed')
  const code = `require('node:fs').writeFileSync('${directory}/own', 'mine')`
  const { stderr } = await home.exec(['run', '--file', `app=${directory}`, '--', node, '-e', code])
  assert.match(stderr, /warning: .*mixed is not empty, so it stays/)
  assert.deepEqual(readdirSync(directory), ['own'])
  assert.match(
    await home.fails(2, ['run', '--file', `app=${directory}`, '--', 'true']),
    /already exists; choose another path/,
  )
  assert.deepEqual(readdirSync(directory), ['own'])
})

test('--file of a secret is masked, cached for offline use, and watched', async () => {
  const path = join(home.directory, 'watched')
  const env = { PLATFORM_PASSPHRASE: 'correct horse', XDG_STATE_HOME: join(home.directory, 'filed') }
  await home.ok('set secret filed token=-', { stdin: 'canary-first' })
  const args = ['run', '--file', `filed.token=${path}`, '--mask', '--', 'cat', path]
  assert.equal((await home.exec(args, { env })).stdout, '***')
  await server.restart(async () => {
    const { stdout, stderr } = await home.exec(args, { env })
    assert.equal(stdout, '***')
    assert.match(stderr, /using cached values/)
  })
  const code = `process.on('SIGUSR1', () => process.exit(9)); setInterval(() => {}, 1e6); console.log(require('node:fs').readFileSync('${path}', 'utf8'))`
  const child = home.start(['run', '--file', `filed.token=${path}`, '--watch', '--', node, '-e', code])
  const until = reading(child)
  await until(/canary-first\n/)
  await home.ok('set secret filed token=-', { stdin: 'canary-second' })
  await until(/canary-second\n/)
  child.kill('SIGUSR1')
  assert.deepEqual(await once(child, 'exit'), [9, null])
  assert.equal(existsSync(path), false)
})

test('--file names secrets of projects, and reports what does not exist', async () => {
  await home.ok('set secret own token=- --project shop', { stdin: 'canary-shop' })
  const path = join(home.directory, 'shop-token')
  const args = ['run', '--project', 'shop', '--file', `own.token=${path}`, '--', 'cat', path]
  assert.equal((await home.exec(args)).stdout, 'canary-shop')
  assert.match(await home.fails(3, 'run --file nothing=x -- true'), /"nothing" not found/)
  assert.match(await home.fails(2, 'run -- true'), /--secret NAME or --file NAME=PATH is missing/)
  for (const [given, flag] of [
    ['--file shop/app=x', '--file: "shop/app"'],
    ['--secret shop/app.token=TOKEN', '--secret: "shop/app.token"'],
  ])
    assert.equal(
      await home.fails(2, `run ${given} -- true`),
      `platform: ${flag} is not the name of a secret; for a secret of a project use --project shop\n`,
    )
  assert.doesNotMatch(await home.fails(2, 'run --project web --file shop/app=x -- true'), /use --project/)
  assert.match(await home.fails(2, 'run --file app.token=x --file app.token=y -- true'), /given twice/)
  assert.match(await home.fails(2, 'run --file app.token=x --file app=x -- true'), /both write to/)
})

test('flags of a program before -- are rejected, with the right position', async () => {
  assert.match(
    await home.fails(2, 'run -s app sh -c env'),
    /unknown flag -c\n.*put the program and its arguments after --/,
  )
})

test('--mask keeps values out of both streams', async () => {
  const code =
    'process.stdout.write("a " + process.env.token.slice(0, 5)); setTimeout(() => { console.log(process.env.token.slice(5)); console.error(process.env.token) }, 20)'
  const { stdout, stderr } = await home.exec(['run', '-s', 'app', '--mask', '--', node, '-e', code])
  assert.deepEqual([stdout, stderr], ['a ***\n', '***\n'])
})

test('--watch restarts the program when a value changes; an expired key keeps it running', async t => {
  const key = (await home.ok('create accesskey watcher')).trim()
  const own = await openHome()
  t.after(() => own.close())
  await own.signIn(server, key)
  const child = own.start(['run', '-s', 'app', '--watch', '--', node, '-e', stay])
  const until = reading(child)
  let said = ''
  child.stderr?.on('data', chunk => {
    said += chunk
  })
  await until(/canary-one\n/)
  await home.ok('set secret app token=-', { stdin: 'canary-two' })
  await until(/canary-two\n/)
  assert.match(said, /restarting the program/)
  await home.ok('disable accesskey watcher')
  await eventually('it prints that', async () => /cannot watch, retrying/.test(said))
  assert.equal(child.exitCode, null)
  child.kill('SIGUSR1')
  const [code] = await once(child, 'exit')
  assert.equal(code, 9)
})

test('--watch that started with cached values follows the server once it is reachable', async () => {
  const env = { PLATFORM_PASSPHRASE: 'correct horse', XDG_STATE_HOME: join(home.directory, 'back') }
  await home.ok('set secret back token=-', { stdin: 'canary-before' })
  assert.equal((await home.run(['run', '-s', 'back', '--', 'true'], { env })).code, 0)
  let child: ChildProcess | undefined
  let said = ''
  await server.restart(async () => {
    child = home.start(['run', '-s', 'back', '--watch', '--', node, '-e', stay], { env })
    child.stderr?.on('data', chunk => {
      said += chunk
    })
    await reading(child)(/canary-before\n/)
  })
  assert.ok(child)
  const until = reading(child)
  assert.match(said, /using cached values from \d+s ago/)
  await home.ok('set secret back token=-', { stdin: 'canary-after' })
  await until(/canary-after\n/)
  await home.ok('set secret back token=-', { stdin: 'canary-later' })
  await until(/canary-later\n/)
  assert.equal(said.match(/using cached values/g)?.length, 1, said)
  child.kill('SIGUSR1')
  assert.deepEqual(await once(child, 'exit'), [9, null])
})

test('a key that expires during --watch keeps the program running, with a warning', async t => {
  const key = (await home.ok('create accesskey brief --ttl 1h')).trim()
  const own = await openHome()
  t.after(() => own.close())
  await own.signIn(server, key)
  const child = own.start(['run', '-s', 'app', '--watch', '--', node, '-e', stay])
  const until = reading(child)
  let said = ''
  child.stderr?.on('data', chunk => {
    said += chunk
  })
  await until(/canary-/)
  await server.request('PATCH', '/apis/management.platform.sh/v1/ownedaccesskeys/brief', {
    body: { spec: { ttl: 1 } },
    headers: { 'Content-Type': 'application/merge-patch+json' },
  })
  await eventually('it prints that', async () => /cannot watch, retrying: .*expired/.test(said))
  assert.equal(child.exitCode, null)
  child.kill('SIGUSR1')
  assert.deepEqual(await once(child, 'exit'), [9, null])
})

test('--watch kills a program that ignores SIGTERM, and starts the next one', async () => {
  const code = `process.on('SIGTERM', () => console.log('ignored')); ${stay}`
  const child = home.start(['run', '-s', 'app', '--watch', '--', node, '-e', code])
  const until = reading(child)
  await until(/canary-two\n/)
  await home.ok('set secret app token=-', { stdin: 'canary-three' })
  await until(/canary-two\nignored\ncanary-three\n/)
  child.kill('SIGUSR1')
  assert.deepEqual(await once(child, 'exit'), [9, null])
  await home.ok('set secret app token=-', { stdin: 'canary-two' })
})

test('a key of any name becomes a variable of the program', async () => {
  for (const key of ['__proto__', 'constructor'])
    await home.ok(['set', 'secret', 'odd', `${key}=-`], { stdin: `canary-${key}` })
  const { stdout, stderr } = await home.run(['run', '-s', 'odd', '--', 'sh', '-c', 'echo $__proto__ $constructor'])
  assert.equal(stdout, 'canary-__proto__ canary-constructor\n', stderr)
})

test('signals are forwarded where an older Node starts the pinned one', async () => {
  const older = join(home.directory, 'older.mjs')
  writeFileSync(older, "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.0.0' } })")
  const names = ['SIGUSR1', 'SIGUSR2', 'SIGQUIT', 'SIGHUP', 'SIGTERM']
  const code = `for (const one of ${JSON.stringify(names)}) process.on(one, () => console.log(one)); ${stay}`
  const child = home.start(['run', '-s', 'app', '--', node, '-e', code.replace('process.exit(9)', '0')], {
    imports: [older],
  })
  const until = reading(child)
  await until(/canary-/)
  for (const name of names) {
    child.kill(name as NodeJS.Signals)
    await until(new RegExp(`${name}\n`))
  }
  assert.ok(/node-linux-\w+\/bin\/node/.test(home.told()), 'it was handed over')
  child.kill('SIGINT')
  assert.deepEqual(await once(child, 'exit'), [130, null])
})

test('a program that ignores SIGTERM keeps running without --watch, and determines the exit code', async () => {
  const code = `process.on('SIGTERM', () => console.log('ignored')); ${stay}`
  const child = home.start(['run', '-s', 'app', '--', node, '-e', code])
  const until = reading(child)
  await until(/canary-/)
  child.kill('SIGTERM')
  await until(/ignored\n/)
  assert.equal(child.exitCode, null)
  child.kill('SIGUSR1')
  assert.deepEqual(await once(child, 'exit'), [9, null])
})

test('while the server is unreachable the cached values are used, encrypted on disk, unless disabled', async () => {
  const env = { PLATFORM_PASSPHRASE: 'correct horse' }
  const args = ['run', '-s', 'app', '--', node, '-e', 'process.stdout.write(process.env.token)']
  assert.equal((await home.exec(args, { env })).stdout, 'canary-two')
  const copies = join(home.directory, '.local/state/platform/copies')
  const files = () =>
    readdirSync(copies, { recursive: true, encoding: 'utf8' }).filter(one => statSync(join(copies, one)).isFile())
  const [name = ''] = files()
  assert.equal(statSync(join(copies, name)).mode & 0o777, 0o600)
  assert.equal(readFileSync(join(copies, name)).includes('canary'), false)
  const ca = new X509Certificate(readFileSync(join(server.directory, 'ca.crt')))
  const fingerprint = fingerprintOf(ca)
  const pipeline = { ...env, PLATFORM_ACCESS_KEY: `${server.adminKey}@${server.https}#${fingerprint}` }
  assert.equal((await home.run(args, { env: pipeline })).stdout, 'canary-two')
  await server.restart(async () => {
    const alone = await home.run(args, { env: pipeline })
    assert.equal(alone.stdout, 'canary-two', alone.stderr)
    const away = await home.exec(args, { env })
    assert.equal(away.stdout, 'canary-two')
    assert.match(away.stderr, /connection refused; using cached values from \d+s ago/)
    const wrong = await home.run(args, { env: { PLATFORM_PASSPHRASE: 'another' } })
    assert.equal(wrong.code, 7)
    assert.match(wrong.stderr, /cannot decrypt the cached copy: PLATFORM_PASSPHRASE has changed/)
    assert.equal((await home.run(args)).code, 7, 'without a key there is no copy')
    assert.equal((await home.run(['run', '--no-fallback', ...args.slice(1)], { env })).code, 7)
  })
  await home.ok('delete secret app --yes')
  assert.equal((await home.run(args, { env })).code, 3)
  assert.deepEqual(files(), [], 'what is gone leaves no copy')
})

/** A copy that is there, and a new value that is to replace it while `how` lets no disk take it. */
async function keepsCopy(name: string, how: Parameters<CliHome['exec']>[1], why: RegExp): Promise<void> {
  const more = ` ${'x'.repeat(60_000)}`
  await home.ok(`set secret ${name} token=-`, { stdin: `canary-first${more}` })
  const state = join(home.directory, name)
  const env = { PLATFORM_PASSPHRASE: 'a passphrase', XDG_STATE_HOME: state }
  const args = ['run', '-s', name, '--', node, '-e', 'process.stdout.write(process.env.token)']
  assert.equal((await home.run(args, { env })).stdout, `canary-first${more}`)
  const copies = () =>
    readdirSync(join(state, 'platform/copies'), { recursive: true, withFileTypes: true })
      .filter(one => one.isFile())
      .map(({ parentPath, name: file }) => [file, readFileSync(join(parentPath, file), 'base64')])
  const before = copies()
  await home.ok(`set secret ${name} token=-`, { stdin: `canary-second${more}` })
  const { code, stdout, stderr } = await home.exec(args, { ...how, env: { ...env, ...how?.env } })
  assert.deepEqual([code, stdout], [0, `canary-second${more}`], stderr)
  assert.match(stderr, why)
  assert.deepEqual(copies(), before)
}

test('a full disk keeps the previous copy, and leaves nothing else', () =>
  // No file may grow beyond a size that the copy has, and nothing else.
  keepsCopy(
    'full',
    { within: `trap '' XFSZ; ulimit -f 64; exec "$@"` },
    /cannot cache the secrets for offline use: cannot write .*EFBIG/,
  ))

const fiu = await openFiu()
after(() => fiu?.close())
if (fiu) {
  test('a backup without disk space names its file, and leaves no partial file', async () => {
    const file = join(home.directory, 'full.backup')
    const { code, stderr } = await home.exec(`backup ${file} --data ${server.directory}`, {
      env: fiu.failing('posix/io/sync/fsync', constants.errno.ENOSPC),
    })
    assert.deepEqual([code, stderr], [1, `platform: cannot write ${file}: no space left on device\n`])
    assert.deepEqual(
      readdirSync(home.directory).filter(name => name.includes('full.backup')),
      [],
    )
  })
  test('a disk that is full at the final rename keeps the previous copy', () =>
    keepsCopy(
      'no-space',
      { env: fiu.failing('posix/io/sync/fsync', constants.errno.ENOSPC) },
      /cannot cache the secrets for offline use: cannot write \S+: no space left on device\n/,
    ))
} else notRun('libfiu')

test('a copy that cannot be written is reported, and the program runs', async () => {
  await home.ok('set secret late token=-', { stdin: 'canary' })
  const state = join(home.directory, 'state')
  mkdirSync(state)
  writeFileSync(join(state, 'platform'), 'in the way')
  const env = { PLATFORM_PASSPHRASE: 'x', XDG_STATE_HOME: state }
  const { code, stdout, stderr } = await home.run(['run', '-s', 'late', '--', node, '-e', 'console.log(1)'], { env })
  assert.deepEqual([code, stdout], [0, '1\n'])
  assert.match(stderr, /cannot cache the secrets/)
})
