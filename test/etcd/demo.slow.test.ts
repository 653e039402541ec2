// `npm run demo:ha`: kubectl works with every replica, also while members and replicas are killed.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { exec } from '../support/exec.ts'
import { type Kubectl, withEachKubectl } from '../support/kubectl.ts'
import { eventually } from '../support/wire.ts'

const demo = join(import.meta.dirname, '../../demo/ha.ts')

async function startDemo(t: TestContext) {
  const child = spawn(process.execPath, [demo], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    printed += text
  })
  const type = async (command: string, result = 'done') => {
    child.stdin.write(`${command}\n`)
    await eventually(command, async () => printed.includes(`${command}: ${result}`))
  }
  await eventually('the demo is ready', async () => printed.includes('quit'))
  return { child, type, printed: () => printed }
}

async function tryDemo(t: TestContext, { file }: Kubectl): Promise<void> {
  const { child, type, printed } = await startDemo(t)
  const commands = [...printed().matchAll(/^ {2}kubectl (--kubeconfig \S+ --server \S+) get teams$/gm)].map(
    ([, flags = '']) => flags.split(' '),
  )
  assert.equal(commands.length, 3)
  const kubectl = (index: number, ...args: readonly string[]) => exec(file, [...(commands[index] ?? []), ...args])
  const works = (index: number) =>
    eventually(`kubectl works with replica ${index + 1}`, async () => (await kubectl(index, 'get', 'teams')).code === 0)
  for (const index of [0, 1, 2]) await works(index)
  await type('kill member 1')
  for (const index of [0, 1, 2]) await works(index)
  await type('start member 1')
  await type('pause member 2')
  for (const index of [0, 1, 2]) await works(index)
  await type('resume member 2')
  await type('kill replica 1')
  for (const index of [1, 2]) await works(index)
  await type('start replica 1')
  await works(0)
  child.stdin.write('quit\n')
  const [code] = await once(child, 'exit')
  assert.equal(code, 0)
}

await withEachKubectl(kubectl => {
  test('the demo of high availability', t => tryDemo(t, kubectl))
})

test('a command that does not fit the state changes nothing', async t => {
  const { child, type } = await startDemo(t)
  await type('start member 1', 'it runs already')
  await type('start replica 2', 'it runs already')
  await type('kill member 1')
  await type('pause member 1', 'it does not run')
  await type('start member 1')
  await type('kill replica 2')
  await type('start replica 2')
  child.stdin.end()
  const [code] = await once(child, 'exit')
  assert.equal(code, 0)
})

for (const signal of ['SIGTERM', 'SIGHUP'] as const)
  test(`${signal} ends the members and replicas, and removes their files`, async t => {
    const { child, printed } = await startDemo(t)
    const [kubeconfig = ''] = /\S+admin.kubeconfig/.exec(printed()) ?? []
    const [, endpoint = ''] = /--etcd-endpoints (http:\S+)/.exec(printed()) ?? []
    assert.equal((await fetch(`${endpoint}/health`)).status, 200)
    assert.ok(existsSync(kubeconfig))
    child.kill(signal)
    await once(child, 'exit')
    await eventually('the member has ended', () =>
      fetch(`${endpoint}/health`).then(
        () => false,
        () => true,
      ),
    )
    assert.ok(!existsSync(kubeconfig))
  })
