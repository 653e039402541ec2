// The package as it is published: packed, and installed with `npm install --global` on a machine without a compiler.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { copyCheckout, npmSettings } from '../support/checkout-copy.ts'
import { openHome } from '../support/cli-home.ts'
import { findKubectls } from '../support/kubectl.ts'
import { notRun } from '../support/missing-tool.ts'
import { freePort } from '../support/ports.ts'
import { bootSystemd, canBootSystemd } from '../support/systemd-machine.ts'
import { checkSecret, kubectlFor, useServer } from './workload.ts'

const root = join(import.meta.dirname, '../..')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const program = 'prefix/lib/node_modules/platform-plane/bin/platform.js'
// Of a server it starts itself: these two files hold the key that it makes.
const home = await openHome({ program, mayHold: /^data\/admin\.(key|kubeconfig)$/ })
const work = home.directory
const place = join(work, 'prefix/lib')
const installed = join(place, 'node_modules/platform-plane')
const nobody = 65534

before(async () => {
  const checkout = await copyCheckout()
  try {
    await checkout.run('npm', 'pack', '--silent', '--pack-destination', work)
  } finally {
    checkout.remove()
  }
  const tarball = join(work, `${manifest.name}-${manifest.version}.tgz`)
  // Programs that npm needs. A dependency that compiles something would fail.
  const tools = join(work, 'tools')
  mkdirSync(tools)
  for (const name of ['sh', 'env']) symlinkSync(programNamed(name), join(tools, name))
  symlinkSync(process.execPath, join(tools, 'node'))
  const npm = realpathSync(programNamed('npm'))
  const install = [npm, 'install', '--global', '--prefix', join(work, 'prefix'), tarball]
  const { code, stdout, stderr } = await home.by([process.execPath, ...install], {
    env: { ...npmSettings(), PATH: tools },
    timeout: 300_000,
  })
  assert.equal(code, 0, stdout + stderr)
  writeFileSync(join(place, 'package.json'), '{"type":"module"}')
})
after(() => home.close())

function programNamed(name: string): string {
  const files = (process.env['PATH'] ?? '').split(delimiter).map(directory => join(directory, name))
  const file = files.find(existsSync)
  assert.ok(file, `${name} is not installed`)
  return file
}

test('it contains the built program, its types and no sources or tests', () => {
  const files = readdirSync(installed, { recursive: true, encoding: 'utf8' }).filter(
    name => !name.startsWith('node_modules'),
  )
  assert.deepEqual(
    readdirSync(installed).toSorted(),
    ['CHANGELOG.md', 'LICENSE', 'README.md', 'bin', 'dist', 'node_modules', 'package.json'].toSorted(),
  )
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
    files.filter(name => /^(src|test)\b|\.test\.|\.map$|(?<!\.d)\.ts$/.test(name)),
    [],
  )
  for (const name of files.filter(one => /\.(js|css|html|json|md|ts)$/.test(one)))
    assert.doesNotMatch(readFileSync(join(installed, name), 'utf8'), /platform-checkout-|sourceMappingURL/, name)
})

test('it contains exactly the dependencies that it names, and theirs', () => {
  const wanted = new Set(Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }))
  const direct = readdirSync(join(installed, 'node_modules'))
  for (const name of Object.keys(manifest.dependencies))
    assert.ok(existsSync(join(installed, 'node_modules', name, 'package.json')), name)
  for (const name of Object.keys(manifest.devDependencies).filter(one => !wanted.has(one) && !one.startsWith('@')))
    assert.ok(!direct.includes(name), `${name} is only for development`)
})

test('an unprivileged user runs it with the PATH of the systemd unit', async () => {
  const unit = readFileSync(join(root, 'deploy/systemd/platform.service'), 'utf8')
  const [, path = ''] = /^Environment=PATH=(.*)$/m.exec(unit) ?? []
  const PATH = path.replaceAll('/usr/local', join(work, 'prefix'))
  const data = join(work, 'unprivileged')
  mkdirSync(data)
  const isRoot = process.getuid?.() === 0
  if (isRoot) {
    chmodSync(work, 0o755)
    chownSync(data, nobody, nobody)
  }
  const flags = ['serve', '--data', data, '--https', '127.0.0.1:0', '--http', '127.0.0.1:0']
  const server = spawn(join(work, 'prefix/bin/platform'), flags, {
    env: { PATH, HOME: data },
    ...(isRoot && { uid: nobody, gid: nobody }),
  })
  const gone = once(server, 'exit')
  try {
    const [, https = '', http = ''] = await printedBy(server, /is ready: (\S+) (\S+)/)
    // One process, without an older Node in between.
    assert.equal(realpathSync(`/proc/${server.pid}/exe`).endsWith(`node-linux-${process.arch}/bin/node`), true)
    assert.match(https, /^https:/)
    assert.equal(await (await fetch(`${http}/readyz`)).text(), 'ok')
  } finally {
    server.kill('SIGTERM')
  }
  assert.deepEqual(await gone, [0, null])
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
    const [, https = '', http = ''] = await printedBy(server, /is ready: (\S+) (\S+)/)
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

const [kubectl] = (await findKubectls()).toReversed()
if (!kubectl) notRun('kubectl')
else if (!canBootSystemd()) notRun('systemd, or root')
else test('the systemd units run it under a real systemd, in their sandbox', () => runUnits(kubectl.file))

/** With the commands of docs/INSTALL.md. */
async function runUnits(kubectlFile: string): Promise<void> {
  const units = join(root, 'deploy/systemd')
  const [port, gatewayPort] = [await freePort(), await freePort()]
  const machine = await bootSystemd(`
mkdir -p $R/usr/local/lib/node_modules/platform-plane $R/etc/platform
mount --bind ${installed} $R/usr/local/lib/node_modules/platform-plane
ln -sf ../lib/node_modules/platform-plane/bin/platform.js $R/usr/local/bin/platform
cp ${units}/*.service $R/etc/systemd/system/
cp ${units}/platform.sysusers $R/usr/lib/sysusers.d/platform.conf
cp ${units}/platform.tmpfiles $R/usr/lib/tmpfiles.d/platform.conf
cp ${units}/master-key.conf $R/etc/
echo PLATFORM_HTTPS=127.0.0.1:${port} > $R/etc/platform/platform.env
echo PLATFORM_HTTP=off >> $R/etc/platform/platform.env`)
  const property = async (unit: string, name: string) =>
    (await machine.run('systemctl', 'show', '-P', name, unit)).trim()
  const ready = async (unit: string, at: number) => {
    for (;;) {
      const { stdout } = await machine.exec('curl', '-sk', `https://127.0.0.1:${at}/readyz`)
      if (stdout === 'ok') return
      const journal = await machine.exec('journalctl', '--no-pager', '--unit', unit)
      assert.notEqual(await property(unit, 'ActiveState'), 'failed', journal.stdout)
      await pause(200)
    }
  }
  const isSandboxed = async (unit: string) => {
    const status = await machine.run('cat', `/proc/${await property(unit, 'MainPID')}/status`)
    const uid = (await machine.run('id', '-u', unit)).trim()
    for (const line of [`Uid:\t${uid}\t`, 'NoNewPrivs:\t1\n', 'Seccomp:\t2\n', 'CapBnd:\t0000000000000000\n'])
      assert.ok(status.includes(line), `${unit}: ${line} is missing in\n${status}`)
  }
  const stop = async (unit: string) => {
    await machine.run('systemctl', 'stop', unit)
    assert.deepEqual([await property(unit, 'Result'), await property(unit, 'ExecMainStatus')], ['success', '0'])
  }
  try {
    await machine.run('systemd-sysusers')
    await machine.run('systemd-tmpfiles', '--create')
    await machine.run('systemctl', 'start', 'platform')
    await ready('platform', port)
    await isSandboxed('platform')
    const kubeconfig = join(work, 'data/admin.kubeconfig')
    writeFileSync(kubeconfig, await machine.run('cat', '/var/lib/platform/admin.kubeconfig'))
    const admin = kubectlFor(kubectlFile, kubeconfig)
    await useServer(admin)

    const key = await admin(['create', '-o', 'jsonpath={.spec.key}', '-f', '-'], agentKey)
    await admin(['create', 'clusterrolebinding', 'gateway', '--clusterrole=platform-gateway', '--user=gateway'])
    const directory = '/etc/platform-gateway'
    const put = (name: string, text: string) =>
      machine.run(
        'sh',
        '-c',
        `umask 027; printf %s "$1" > ${directory}/${name}; chgrp platform-gateway ${directory}/${name}`,
        'sh',
        text,
      )
    await put('agent.key', key)
    await put('ca.crt', await machine.run('cat', '/var/lib/platform/ca.crt'))
    await put('prod.kubeconfig', readFileSync(kubeconfig, 'utf8'))
    await put('gateway.yaml', JSON.stringify(gatewayConfig(port, gatewayPort)))
    await machine.run('systemctl', 'start', 'platform-gateway')
    await ready('platform-gateway', gatewayPort)
    await isSandboxed('platform-gateway')
    await stop('platform-gateway')
    await stop('platform')

    // The master key outside of the data.
    await machine.run('install', '-m', '600', '/var/lib/platform/master.key', '/etc/platform/master.key')
    await machine.run('rm', '/var/lib/platform/master.key')
    await machine.run('install', '-D', '/etc/master-key.conf', '/etc/systemd/system/platform.service.d/master-key.conf')
    await machine.run('systemctl', 'daemon-reload')
    await machine.run('systemctl', 'start', 'platform')
    await ready('platform', port)
    await checkSecret(admin)
    assert.equal((await machine.exec('test', '-e', '/var/lib/platform/master.key')).code, 1)
    await stop('platform')

    // Invalid settings end it for good.
    await machine.run('sh', '-c', 'echo PLATFORM_LOG_LEVEL=loud >> /etc/platform/platform.env')
    await machine.exec('systemctl', 'start', 'platform')
    while ((await property('platform', 'ActiveState')) !== 'failed') await pause(200)
    assert.deepEqual(
      [await property('platform', 'ExecMainStatus'), await property('platform', 'NRestarts')],
      ['2', '0'],
    )
  } finally {
    await machine.close()
  }
}

const agentKey = {
  apiVersion: 'management.platform.sh/v1',
  kind: 'OwnedAccessKey',
  metadata: { name: 'gateway' },
  spec: { user: 'gateway', scope: { roles: [{ role: 'agent' }] } },
}

/** The management API is also the cluster, as in docs/GATEWAY.md. */
const gatewayConfig = (port: number, gatewayPort: number) => ({
  apiVersion: 'config.platform.sh/v1',
  kind: 'GatewayConfig',
  listen: `127.0.0.1:${gatewayPort}`,
  tls: { directory: '/var/lib/platform-gateway/tls' },
  issuer: { url: `https://127.0.0.1:${port}`, ca: 'ca.crt' },
  service: { keyFile: 'agent.key' },
  clusters: [{ name: 'prod', kubeconfig: 'prod.kubeconfig' }],
})

/** Waits for output of a program. */
async function printedBy(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', chunk => {
      printed += chunk
    })
  for (;;) {
    const found = pattern.exec(printed)
    if (found) return found
    const ended = await Promise.race([once(child.stdout ?? child, 'data'), once(child, 'exit').then(() => 'ended')])
    if (ended === 'ended') assert.fail(printed)
  }
}
