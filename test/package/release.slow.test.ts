// `npm run release`: the real command in a checkout of its own, and docs/INSTALL.md with the artefacts that it writes.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { copyCheckout, npmSettings } from '../support/checkout-copy.ts'
import { bootDebian, findDebian } from '../support/debian-machine.ts'
import { openShell, runBlocks } from '../support/docs.ts'
import { findKubectls } from '../support/kubectl.ts'
import { notRun } from '../support/missing-tool.ts'

const checkout = await copyCheckout()
after(() => checkout.remove())
const at = (name: string) => join(checkout.directory, name)
const { name, version } = JSON.parse(readFileSync(at('package.json'), 'utf8'))
const stem = `${name}-${version}`
const release = (...flags: string[]) =>
  checkout.exec('npm', 'run', '--silent', 'release', '--', '--skip-tests', ...flags)

test('it reports every reason against a release at once, and writes nothing', async () => {
  await checkout.run('git', 'tag', `v${version}`)
  await checkout.run('git', 'checkout', '--quiet', '-b', 'topic')
  writeFileSync(at('CHANGELOG.md'), '# Changelog\n')
  const { code, stderr } = await release()
  assert.equal(code, 1)
  for (const reason of [
    'the branch is topic',
    'CHANGELOG.md has no section',
    'uncommitted changes',
    `the tag v${version} exists`,
  ])
    assert.ok(stderr.includes(reason), `${reason} is missing in:\n${stderr}`)
  assert.ok(!existsSync(at('release')))
  await checkout.run('git', 'tag', '--delete', `v${version}`)
  await checkout.run('git', 'checkout', '--quiet', '--force', 'main')
})

test('failing tests stop it', async () => {
  const manifest = readFileSync(at('package.json'), 'utf8')
  writeFileSync(at('package.json'), manifest.replace('node test/gate.ts"', 'exit 3"'))
  await checkout.run('git', 'commit', '--quiet', '--all', '--message', 'Break the tests')
  const { code, stderr } = await checkout.exec('npm', 'run', '--silent', 'release')
  assert.equal(code, 1)
  assert.match(stderr, /npm test failed/)
  assert.ok(!existsSync(at('release')))
  await checkout.run('git', 'reset', '--quiet', '--hard', 'HEAD~1')
})

test('a dry run writes everything but the tag', async () => {
  const { code, stdout, stderr } = await release('--dry-run')
  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /was not tagged/)
  assert.equal(await checkout.run('git', 'tag'), '')
  assert.deepEqual(readdirSync(at('release')).toSorted(), [
    'SHA256SUMS',
    `${stem}-deploy.tar.gz`,
    ...['arm64', 'x64'].flatMap(arch => [`${stem}-image-${arch}.cdx.json`, `${stem}-image-${arch}.tar`]),
    `${stem}.cdx.json`,
    `${stem}.tgz`,
  ])
})

test('SHA256SUMS has the checksum of every other artefact', () => {
  const sums = new Map(
    readFileSync(at('release/SHA256SUMS'), 'utf8')
      .trimEnd()
      .split('\n')
      .map(line => line.split('  ').toReversed() as [string, string]),
  )
  const others = readdirSync(at('release')).filter(one => one !== 'SHA256SUMS')
  assert.deepEqual([...sums.keys()].toSorted(), others.toSorted())
  for (const [file, sum] of sums)
    assert.equal(
      createHash('sha256')
        .update(readFileSync(at(`release/${file}`)))
        .digest('hex'),
      sum,
      file,
    )
})

test('the image of each architecture has the Node of that architecture', async () => {
  for (const [arch, [oci, machine]] of Object.entries({ x64: ['amd64', 62], arm64: ['arm64', 183] } as const)) {
    const file = at(`release/${stem}-image-${arch}.tar`)
    const read = async (path: string) => JSON.parse(await checkout.run('tar', '-xOf', file, path))
    const blob = (digest: string) => `blobs/${digest.replace(':', '/')}`
    const manifest = await read(blob((await read('index.json')).manifests[0].digest))
    const config = await read(blob(manifest.config.digest))
    const { User, Volumes, ExposedPorts, Labels } = config.config
    assert.deepEqual([config.architecture, config.os, User], [oci, 'linux', '65532:65532'])
    assert.deepEqual([Volumes, ExposedPorts], [{ '/data': {} }, { '8443/tcp': {} }])
    assert.equal(Labels['org.opencontainers.image.version'], version)
    assert.equal(`${Labels['org.opencontainers.image.revision']}\n`, await checkout.run('git', 'rev-parse', 'HEAD'))
    const layer = `tar -xOf ${file} ${blob(manifest.layers[1].digest)} | tar -xzO usr/local/bin/node | head -c 20 | od -An -j18 -N2 -tu2`
    assert.equal((await checkout.run('sh', '-c', layer)).trim(), String(machine), arch)
  }
})

test('the bill of materials has exactly the dependencies of the lock file that are not for development', () => {
  const { packages } = JSON.parse(readFileSync(at('package-lock.json'), 'utf8')) as {
    packages: { [path: string]: { version: string; dev?: boolean; integrity: string } }
  }
  const bom = JSON.parse(readFileSync(at(`release/${stem}.cdx.json`), 'utf8'))
  const locked = Object.entries(packages).filter(([path, { dev }]) => path && !dev)
  const listed = new Map(bom.components.map((one: { name: string }) => [one.name, one]))
  assert.equal(bom.components.length, locked.length)
  for (const [path, { version: wanted, integrity }] of locked) {
    const one = listed.get(path.replace(/^.*node_modules\//, '')) as { version: string; hashes: { content: string }[] }
    assert.equal(one?.version, wanted, path)
    assert.equal(`sha512-${Buffer.from(one.hashes[0]?.content ?? '', 'hex').toString('base64')}`, integrity, path)
  }
  assert.deepEqual([bom.bomFormat, bom.specVersion, bom.metadata.component.name], ['CycloneDX', '1.5', name])
  const refs = new Set(bom.components.map((one: { 'bom-ref': string }) => one['bom-ref']))
  for (const { dependsOn } of bom.dependencies) for (const ref of dependsOn) assert.ok(refs.has(ref), ref)
})

test('no artefact contains a path of this machine', async () => {
  for (const file of [`${stem}.cdx.json`, `${stem}-image-x64.cdx.json`])
    assert.ok(!readFileSync(at(`release/${file}`), 'utf8').includes(checkout.directory), file)
  const names = await checkout.run('tar', '-tzf', at(`release/${stem}-deploy.tar.gz`))
  assert.match(names, new RegExp(`^${stem}-deploy/systemd/platform.service$`, 'm'))
})

test('every block of docs/INSTALL.md runs with these artefacts and prints the output on the page', async () => {
  const [kubectl] = (await findKubectls()).toReversed()
  const shell = await openShell(kubectl?.file ?? '/bin/false', { from: at('release'), env: npmSettings() })
  try {
    await runBlocks(shell, 'docs/INSTALL.md', 'sh release')
  } finally {
    await shell.close()
  }
})

const tree = await findDebian()
if (!tree) notRun('an archive of Debian, or root')
else
  test('so does it in a bare Debian, on the ports of the page', async () => {
    const machine = await bootDebian(tree)
    try {
      const home = machine.home
      cpSync(at('release'), join(machine.root, home, 'release'), { recursive: true })
      await machine.run(`chown -R reader: ${home}`)
      const shell = machine.openShell(home, 'release')
      try {
        await runBlocks(shell, 'docs/INSTALL.md', 'sh release')
      } finally {
        await shell.close()
      }
    } finally {
      await machine.close()
    }
  })

test('the same sources give the same package, and a release tags them', async () => {
  const before = readFileSync(at(`release/${stem}.tgz`))
  const bom = readFileSync(at(`release/${stem}.cdx.json`), 'utf8')
  const deploy = readFileSync(at(`release/${stem}-deploy.tar.gz`))
  rmSync(at('dist'), { recursive: true })
  const { code, stdout, stderr } = await release('--skip-images')
  assert.equal(code, 0, stdout + stderr)
  assert.ok(before.equals(readFileSync(at(`release/${stem}.tgz`))))
  assert.ok(deploy.equals(readFileSync(at(`release/${stem}-deploy.tar.gz`))))
  assert.equal(readFileSync(at(`release/${stem}.cdx.json`), 'utf8'), bom)
  assert.match(stdout, new RegExp(`git push origin v${version}`))
  assert.equal((await checkout.run('git', 'cat-file', '-t', `v${version}`)).trim(), 'tag')
  assert.equal(
    await checkout.run('git', 'rev-parse', `v${version}^{commit}`),
    await checkout.run('git', 'rev-parse', 'HEAD'),
  )
})
