// kubectl on the current context: the kubeconfig holds no key, and what is there already stays.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'
import { findKubectls } from '../support/kubectl.ts'
import { notRun } from '../support/missing-tool.ts'

// Looked for before any test is known: what is awaited between them is waited for by none.
const [kubectl] = (await findKubectls()).toReversed()
const { server, home } = await signedIn({ storage: 'memory' })

test('a kubeconfig contains an exec plugin, and no key', async () => {
  const text = await home.ok('kubeconfig')
  assert.match(text, /command: /)
  assert.match(text, /- credential\n/)
  assert.equal(text.includes(server.adminKey), false)
  const credential = JSON.parse(await home.ok('credential'))
  assert.equal(credential.status.token, server.adminKey)
})

test('--merge keeps other entries and comments of the file, and can be repeated', async () => {
  const file = join(home.directory, '.kube/config')
  mkdirSync(join(home.directory, '.kube'))
  const theirs =
    '# mine\napiVersion: v1\nkind: Config\nclusters:\n  - name: a # first\n    cluster: { server: https://a }\nusers: []\ncontexts: null\n'
  writeFileSync(file, theirs)
  await home.ok('kubeconfig --merge')
  const once = readFileSync(file, 'utf8')
  await home.ok('kubeconfig --merge')
  assert.equal(readFileSync(file, 'utf8'), once)
  assert.match(once, /^# mine\n/)
  assert.match(once, /name: a # first/)
  assert.match(once, /current-context: platform-127.0.0.1/)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  for (const broken of ['[]', 'clusters: {', 'clusters: 3']) {
    writeFileSync(file, broken)
    assert.match(await home.fails(1, 'kubeconfig --merge'), /was not changed/)
    assert.equal(readFileSync(file, 'utf8'), broken)
  }
})

test('--merge waits for kubectl, which uses the same lock, and says so; then it continues', async () => {
  const file = join(home.directory, 'waited')
  writeFileSync(`${file}.lock`, '', { mode: 0 })
  const child = home.start(['kubeconfig', '--merge'], { env: { KUBECONFIG: file } })
  let said = ''
  for await (const chunk of child.stderr as NodeJS.ReadableStream) {
    said += chunk
    if (said.includes('\n')) rmSync(`${file}.lock`, { force: true })
  }
  if (child.exitCode === null) await once(child, 'exit')
  assert.equal(child.exitCode, 0, said)
  assert.equal(
    said,
    `platform: waiting for another program to release ${file}.lock; a stale lock expires after 10 s\nAdded context platform-127.0.0.1 to ${file}.\n`,
  )
})

test('PLATFORM_NAMESPACE takes precedence over the namespace of the context in a kubeconfig', async () => {
  const namespaceIn = async (env: NodeJS.ProcessEnv) =>
    /^ +namespace: (.*)$/m.exec(await home.ok('kubeconfig', { env }))?.[1]
  assert.equal(await namespaceIn({}), undefined)
  assert.equal(await namespaceIn({ PLATFORM_NAMESPACE: 'stage' }), 'stage')
  assert.equal(await namespaceIn({ PLATFORM_NAMESPACE: '' }), undefined)
  assert.match(
    await home.fails(2, 'kubeconfig', { env: { PLATFORM_NAMESPACE: 'Stage!' } }),
    /^platform: PLATFORM_NAMESPACE: "Stage!" must be lower-case letters/,
  )
})

test('--merge without a home directory fails, and creates no directory', async () => {
  const env = {
    HOME: undefined,
    XDG_CONFIG_HOME: join(home.directory, '.config'),
    XDG_DATA_HOME: join(home.directory, '.local/share'),
  }
  assert.match(await home.fails(2, 'kubeconfig --merge', { env }), /set HOME or KUBECONFIG/)
})

test('without kubectl, platform kubectl says where to get it', async () => {
  assert.match(
    await home.fails(1, 'kubectl get teams', { env: { PATH: '/nonexistent' } }),
    /kubectl is not on the PATH/,
  )
})

if (!kubectl) notRun('kubectl ≥ 1.29')
else {
  const env = () => ({ PATH: `${join(home.directory, 'bin')}:${process.env['PATH']}` })
  test('kubectl works with the kubeconfig, and through platform kubectl, whose file is deleted afterwards', async () => {
    mkdirSync(join(home.directory, 'bin'))
    writeFileSync(join(home.directory, 'bin/kubectl'), `#!/bin/sh\nexec ${kubectl.file} "$@"\n`, { mode: 0o755 })
    const file = join(home.directory, 'platform.kubeconfig')
    writeFileSync(file, await home.ok('kubeconfig'))
    const whoami = ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}']
    // kubectl runs the program that its own platform names, and that is passed on.
    const { stdout: its } = await home.by(['platform', 'kubeconfig'])
    writeFileSync(`${file}-by`, its)
    for (const one of [file, `${file}-by`]) {
      const direct = await home.by([kubectl.file, '--kubeconfig', one, ...whoami])
      assert.equal(direct.stdout, 'admin', direct.stderr)
    }
    const through = await home.exec('kubectl auth whoami -o jsonpath={.status.userInfo.username}', { env: env() })
    assert.equal(through.stdout, 'admin', through.stderr)
    const left = readdirSync(join(home.directory, '.local/state/platform'))
    assert.deepEqual(left, [])
    assert.equal((await home.run('kubectl get nothing', { env: env() })).code, 1)
    await home.ok('set secret here a=- -n stage', { stdin: 'canary-of-stage' })
    const stage = { ...env(), PLATFORM_NAMESPACE: 'stage' }
    for (const [more, wanted] of [
      ['', 'sharedsecret.management.platform.sh/here\n'],
      [' -n default', ''],
    ] as const)
      assert.equal((await home.run(`kubectl get sharedsecrets -o name${more}`, { env: stage })).stdout, wanted)
  })
}
