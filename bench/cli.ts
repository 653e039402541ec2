// `node bench/cli.ts`: how long the built command line takes, from its start to its end, against a local server.

import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from './processes.ts'

const root = join(import.meta.dirname, '..')
const rounds = 15
const targets = { version: 150, whoami: 250, 'get secret bench.key': 250 }

const built = mkdtempSync(join(tmpdir(), 'platform-bench-cli-'))
cpSync(join(root, 'bin'), join(built, 'bin'), { recursive: true })
cpSync(join(root, 'package.json'), join(built, 'package.json'))
mkdirSync(join(built, 'node_modules'))
for (const name of ['yaml']) symlinkSync(join(root, 'node_modules', name), join(built, 'node_modules', name))
const tsc = spawnSync(
  join(root, 'node_modules/.bin/tsc'),
  ['-p', 'tsconfig.build.json', '--outDir', join(built, 'dist')],
  { cwd: root, encoding: 'utf8' },
)
if (tsc.status !== 0) throw new Error(tsc.stdout)

const server = await startServer()
const env = { PATH: process.env['PATH'], HOME: built }
const platform = (args: readonly string[], input = '') => {
  const { status, stderr } = spawnSync(process.execPath, [join(built, 'bin/platform.js'), ...args], {
    env,
    input,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`platform ${args.join(' ')} ended with ${status}: ${stderr}`)
}
let isSlow = false
try {
  platform(['login', server.url, '--ca-file', join(server.directory, 'ca.crt'), '--access-key', '-'], server.key)
  platform(['set', 'secret', 'bench', 'key=-'], 'value')
  for (const [command, target] of Object.entries(targets)) {
    const times = Array.from({ length: rounds }, () => {
      const before = performance.now()
      platform(command.split(' '))
      return performance.now() - before
    }).toSorted((a, b) => a - b)
    const [best = 0, median = 0] = [times[0], times[Math.floor(rounds / 2)]]
    isSlow ||= median > target
    console.log(`platform ${command}: ${median.toFixed(0)} ms (best ${best.toFixed(0)}), target ${target}`)
  }
} finally {
  await server.stop()
  rmSync(built, { recursive: true, force: true })
}
process.exitCode = isSlow ? 1 : 0
