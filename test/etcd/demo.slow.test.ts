// `npm run demo:ha`: kubectl works with every replica, also while members and replicas are killed.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { exec } from '../support/exec.ts'
import { type Kubectl, withEachKubectl } from '../support/kubectl.ts'
import { eventually } from '../support/wire.ts'

const demo = join(import.meta.dirname, '../../demo/ha.ts')

async function tryDemo(t: TestContext, { file }: Kubectl): Promise<void> {
  const child = spawn(process.execPath, [demo], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    printed += text
  })
  const type = async (command: string) => {
    child.stdin.write(`${command}\n`)
    await eventually(command, async () => printed.includes(`${command}: done`))
  }
  await eventually('the demo is ready', async () => printed.includes('quit'))
  const commands = [...printed.matchAll(/^ {2}kubectl (--kubeconfig \S+ --server \S+) get teams$/gm)].map(
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
