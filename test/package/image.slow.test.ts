// The OCI image: built twice, measured, and run in a container runtime with its own configuration.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  chownSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { copyCheckout } from '../support/checkout-copy.ts'
import { type Bundle, type Crun, findCrun, startContainer, unpackImage } from '../support/container.ts'
import { exec } from '../support/exec.ts'
import { findKubectls } from '../support/kubectl.ts'
import { notRun } from '../support/missing-tool.ts'
import { freePort } from '../support/ports.ts'
import { kubectlFor, useServer } from './workload.ts'

const user = 65532
const largest = 200e6
const work = mkdtempSync(join(tmpdir(), 'platform-image-test-'))
after(() => rmSync(work, { recursive: true, force: true }))

const crun = await findCrun()
const [kubectl] = (await findKubectls()).toReversed()
if (!crun) notRun('crun, or root')
else if (!kubectl) notRun('kubectl')
else await declare(crun, kubectl.file)

async function declare(runtime: Crun, kubectlFile: string): Promise<void> {
  const checkout = await copyCheckout()
  after(() => checkout.remove())
  const [archive, sbom, packages] = ['image.tar', 'image.cdx.json', 'packages'].map(name => join(work, name)) as [
    string,
    string,
    string,
  ]
  await checkout.run('npm', 'run', 'image', '--', '--output', archive, '--sbom', sbom, '--packages', packages)
  const bundle = await unpackImage(archive, join(work, 'unpacked'))
  const start = (data: string, more: Partial<Parameters<typeof startContainer>[0]> = {}) =>
    startContainer({ crun: runtime, bundle, data, ...more })

  test('a second build in another directory gives the same digest', async () => {
    const second = join(work, 'second')
    await checkout.run('git', 'clone', '--quiet', checkout.directory, second)
    symlinkSync(join(checkout.directory, 'node_modules'), join(second, 'node_modules'))
    const again = join(work, 'again.tar')
    const flags = ['--output', again, '--sbom', `${sbom}.again`, '--packages', packages]
    await checkout.run('npm', '--prefix', second, 'run', 'image', '--', ...flags)
    assert.equal(digestOf(again), digestOf(archive))
    assert.equal(readFileSync(`${sbom}.again`, 'utf8'), readFileSync(sbom, 'utf8'))
  })

  test('it has at most 200 MB, and no shell, package manager or set-uid program', () => {
    const files = filesIn(bundle)
    const total = files.reduce((sum, { size }) => sum + size, 0)
    assert.ok(total <= largest, `${total} bytes`)
    const names = new Set(files.filter(({ isFile }) => isFile).map(({ path }) => path.split('/').at(-1) ?? ''))
    for (const name of ['sh', 'bash', 'dash', 'busybox', 'apt', 'dpkg', 'npm', 'env', 'package-lock.json'])
      assert.ok(!names.has(name), name)
    assert.deepEqual(
      files.filter(({ mode, isFile }) => isFile && mode & 0o6022),
      [],
    )
    assert.deepEqual(
      files.filter(({ uid }) => uid !== 0).map(({ path }) => path),
      ['data'],
    )
  })

  test('the bill of materials lists every package of npm and Debian in it', () => {
    const { components } = JSON.parse(readFileSync(sbom, 'utf8')) as { components: { purl: string }[] }
    const listed = components.map(({ purl }) => decodeURIComponent(purl)).toSorted()
    const npm = globSync('opt/platform/node_modules/{*,@*/*}/package.json', { cwd: bundle.rootfs })
      .map(file => JSON.parse(readFileSync(join(bundle.rootfs, file), 'utf8')))
      .map(({ name, version }) => `pkg:npm/${name}@${version}`)
    const status = join(bundle.rootfs, 'var/lib/dpkg/status.d')
    const debian = readdirSync(status).map(name => {
      const field = (key: string) =>
        new RegExp(`^${key}: (.*)$`, 'm').exec(readFileSync(join(status, name), 'utf8'))?.[1]
      return `pkg:deb/debian/${name}@${field('Version')}?arch=${field('Architecture')}&distro=trixie`
    })
    const node = listed.filter(purl => purl.startsWith(`pkg:npm/node-linux-${process.arch}@`))
    assert.equal(node.length, 1)
    assert.ok(npm.length > 20 && debian.length > 3)
    assert.deepEqual(listed, [...npm, ...debian, ...node].toSorted())
  })

  test('other programs run in it', async () => {
    const { version } = JSON.parse(readFileSync(join(checkout.directory, 'package.json'), 'utf8'))
    for (const [command, expected] of [
      ['version', version],
      ['gateway --help', 'Usage:'],
      ['vcluster sync --help', 'Usage:'],
    ]) {
      const { code, output } = await start(dataDirectory(command), { command: command.split(' ') }).end()
      assert.equal(code, 0, output)
      assert.ok(output.includes(expected), output)
    }
  })

  test('a server starts with the command of the image, writes only to /data, and ends with 0 after SIGTERM', async () => {
    const { process: own } = bundle.config
    assert.deepEqual(own.args, ['platform', 'serve'])
    assert.deepEqual([own.user, own.cwd], [{ uid: user, gid: user }, '/data'])
    const before = filesIn(bundle)
    const data = dataDirectory('serve')
    const port = await freePort()
    const container = start(data, { env: [`PLATFORM_HTTPS=0.0.0.0:${port}`] })
    await container.until(/is ready/)
    const status = readFileSync(`/proc/${container.pid()}/status`, 'utf8')
    assert.match(status, new RegExp(`^Uid:\t${user}\t${user}\t`, 'm'))
    assert.match(status, /^CapBnd:\t0+$/m)
    await useServer(kubectlFor(kubectlFile, join(data, 'admin.kubeconfig')))
    const page = await exec('curl', ['-s', '--cacert', join(data, 'ca.crt'), `https://127.0.0.1:${port}/console/`])
    assert.match(page.stdout, /<div id="console">/)
    // As docs/INSTALL.md says, without --data: on the same volume, while the server runs.
    const backup = await start(data, { command: ['backup', 'server.backup'] }).end()
    assert.equal(backup.code, 0, backup.output)
    const check = await start(data, { command: ['verify', 'server.backup'] }).end()
    assert.equal(check.code, 0, check.output)
    assert.equal(await container.stop('SIGTERM'), 0)
    assert.deepEqual(filesIn(bundle), before)
    assert.ok(readdirSync(data).includes('platform.db'))
  })
}

const digestOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')

/** Belongs to the user of the image. */
function dataDirectory(name: string): string {
  const directory = join(work, `data-${name.replaceAll(/\W/g, '-')}`)
  mkdirSync(directory, { mode: 0o700 })
  chownSync(directory, user, user)
  return directory
}

function filesIn({ rootfs }: Bundle) {
  return readdirSync(rootfs, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .map(path => {
      const one = lstatSync(join(rootfs, path))
      return {
        path,
        size: one.isFile() ? one.size : 0,
        mode: one.mode & 0o7777,
        uid: one.uid,
        changed: one.ctimeMs,
        isFile: one.isFile(),
      }
    })
}
