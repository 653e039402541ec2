// The time of a command: the built package, from start to exit, with a local server.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { build } from './built-package.ts'
import type { Measured } from './measurement.ts'
import { remove, startServer } from './processes.ts'

const rounds = 15
const commands = [
  { name: 'version', command: 'version', target: 150 },
  { name: 'whoami', command: 'whoami', target: 250 },
  { name: 'get secret', command: 'get secret bench.key', target: 250 },
]

/** Also measures bare Node, because both are slow on a busy machine. */
export async function measureCli(): Promise<Measured> {
  const [directory, server] = [build(['undici', 'yaml']), await startServer()]
  const env = { PATH: process.env['PATH'], HOME: directory, PLATFORM_KEYCHAIN: 'off' }
  const program = [process.execPath, join(directory, 'bin/platform.js')]
  const run = (command: readonly string[], input = '') => {
    const [file = '', ...args] = command
    const { status, stdout, stderr } = spawnSync(file, args, { env, input, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${command.join(' ')} ended with ${status}: ${stderr}`)
    return stdout
  }
  const measured = (command: readonly string[]) => {
    const times = Array.from({ length: rounds }, () => {
      const before = performance.now()
      run(command)
      return performance.now() - before
    }).toSorted((a, b) => a - b)
    const middle = times[Math.floor(rounds / 2)] ?? 0
    const more = `best ${(times[0] ?? 0).toFixed(0)}, ${cpu(command)} of CPU`
    return { milliseconds: middle, more, text: `${middle.toFixed(0)} ms (${more})` }
  }
  /** CPU time of the child processes, as the shell reports it. Other load does not affect it. */
  const cpu = (command: readonly string[]) => {
    const loop = `i=0; while [ $i -lt ${rounds} ]; do "$@" > /dev/null || exit 1; i=$((i+1)); done; times`
    const [, children = ''] = run(['sh', '-c', loop, 'sh', ...command])
      .trim()
      .split('\n')
    const seconds = [...children.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
      (sum, [, m, s]) => sum + Number(m) * 60 + Number(s),
      0,
    )
    return `${((seconds / rounds) * 1000).toFixed(0)} ms`
  }
  try {
    const ca = join(server.directory, 'ca.crt')
    run([...program, 'login', server.url, '--ca-file', ca, '--access-key', '-'], server.key)
    run([...program, 'set', 'secret', 'bench', 'key=-'], 'value')
    const rows = commands.map(one => ({ ...one, took: measured([...program, ...one.command.split(' ')]) }))
    const bare = measured([process.execPath, '-e', '0'])
    const lines = rows.map(({ command, target, took }) => `platform ${command} ${took.text}, wanted ${target} ms`)
    const figures = rows.map(({ name, target, took }) => ({
      name: `cli: ${name}`,
      value: took.milliseconds,
      unit: 'ms',
      bare: { name: 'bare Node', value: bare.milliseconds },
      wanted: target,
      direction: 'at-most' as const,
      note: took.more,
    }))
    return { text: `cli              ${lines.join('; ')}; bare node ${bare.text}`, figures }
  } finally {
    await server.stop()
    remove(server.directory)
    remove(directory)
  }
}
