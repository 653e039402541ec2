// The gate. `npm test` checks types, format, lint and dead code, then runs the unit, conformance and e2e tests.
// `npm run test:slow` runs the others, `*.slow.test.ts`: crashes, disk faults, consistency, malice, full matrices, packaging, bench smoke.
// It ends with `npm run test:etcd`: the tests of the etcd engine, and the e2e tests again on etcd.

import { globSync } from 'node:fs'
import { join, relative } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { findDesktop } from './support/desktop-tools.ts'
import { startEtcd } from './support/etcd.ts'
import { exec } from './support/exec.ts'
import { openFiu } from './support/fiu.ts'
import { findKubectls } from './support/kubectl.ts'

type Step = { readonly name: string; run(): Promise<{ readonly code: number; readonly text: string }> }

const root = join(import.meta.dirname, '..')
const cores = 2
const compiled = join(root, 'node_modules/.cache/compiled')
/** A process that a test left behind holds the runner's pipes open: it must not hold the gate as well. */
const deadlineMinutes = 60

/** Longest first; the test tools are looked up here so that no test waits for a download. */
const steps: Step[] = [
  tool('types', 'tsc', '--pretty', 'false'),
  tool('types: console', 'tsc', '--pretty', 'false', '-p', 'src/console'),
  { name: 'kubectl, libfiu', run: fetchTools },
  { name: 'shells, keyring', run: fetchShells },
  tool('promises', 'oxlint', '--type-aware', '--deny-warnings'),
  tool('dead code', 'knip', '--no-progress', '--no-config-hints'),
  tool('format and lint', 'biome', 'ci', '--colors=off', '--error-on-warnings', '--diagnostic-level=warn', '.'),
]

/** E2e tests of the files of a data directory, of the syncer, of the cost in memory, and of programs beside the server: they do not depend on the engine. */
const ofFiles =
  /(audit-bodies|backup|consistency[a-z-]*|cost|crashes|disk-faults|escalation|first-start|grafana|hostile-clients|kube-compatibility|prometheus[a-z-]*|restore|server-lifecycle\.slow|sync[a-z-]*|upgrade|verify)(\.slow)?\.test\.ts$/

const isSlow = process.argv.includes('--slow')
const isOnEtcd = process.argv.includes('--etcd')
const failed = isSlow || isOnEtcd ? [] : await runSteps()
const hasFailed = await runTests()
if (failed.length) console.log(`FAILED before the tests: ${failed.join(', ')}`)
process.exit(failed.length || hasFailed ? 1 : 0)

function tool(name: string, program: string, ...args: string[]): Step {
  return {
    name,
    async run() {
      const file = join(root, 'node_modules/.bin', program)
      const { code, stdout, stderr } = await exec(file, args, { cwd: root, timeout: 120_000 })
      return { code, text: stdout + stderr }
    },
  }
}

/** Missing tools are not this step's failure: the tests that need them say so. */
async function fetchTools() {
  const found = await findKubectls()
  await (await openFiu())?.close()
  return { code: 0, text: found.map(one => one.version).join(', ') || 'none' }
}

async function fetchShells() {
  return { code: 0, text: (await findDesktop())?.tree ?? 'none' }
}

async function runSteps(): Promise<string[]> {
  const failed: string[] = []
  const queue = steps.values()
  const worker = async () => {
    for (const step of queue) {
      const start = performance.now()
      const { code, text } = await step.run()
      const seconds = ((performance.now() - start) / 1000).toFixed(1)
      console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${step.name.padEnd(16)} ${seconds.padStart(5)} s`)
      if (code === 0) continue
      failed.push(step.name)
      console.log(text.trimEnd())
    }
  }
  await Promise.all(Array.from({ length: cores }, worker))
  return failed
}

/** Runs the files with Node's test runner, and prints the slowest at the end. */
async function runTests(): Promise<boolean> {
  process.chdir(root)
  // Otherwise each file would compile the sources again.
  process.env['NODE_COMPILE_CACHE'] = compiled
  if (isSlow) process.env['PLATFORM_TEST_MATRIX'] = 'full'
  const etcd = isOnEtcd ? await startEtcd() : undefined
  if (etcd) process.env['PLATFORM_TEST_ETCD'] = etcd.endpoints[0]
  const slow = globSync(['src/**/*.slow.test.ts', 'test/**/*.slow.test.ts'])
  const ofEtcd = globSync(['src/storage/etcd/*.slow.test.ts', 'test/etcd/*.slow.test.ts'])
  const all = globSync(['src/**/*.test.ts', 'test/**/*.test.ts'], { exclude: ['test/prove/**'] })
  const matrices = globSync(['test/e2e/kubectl-*.test.ts', 'test/access/kubectl.test.ts'])
  const files = isOnEtcd
    ? [...ofEtcd, ...globSync('test/e2e/*.test.ts').filter(file => !ofFiles.test(file))]
    : isSlow
      ? [...slow.filter(file => !ofEtcd.includes(file)), ...matrices]
      : all.filter(file => !slow.includes(file))
  const execArgv = ['--import', import.meta.resolve('./support/deadline.ts')]
  // Most tests wait for processes and timers more than they compute.
  const events = run({ files: files.toSorted(), concurrency: 2 * cores, execArgv })
  let hasFailed = false
  const running = new Set<string>()
  events.on('test:dequeue', ({ nesting, name }) => nesting === 0 && files.includes(name) && running.add(name))
  const spent = new Map<string, number>()
  const count = ({ nesting, file = '', details }: TestEvent) => {
    if (nesting === 0) spent.set(file, (spent.get(file) ?? 0) + details.duration_ms)
  }
  events.on('test:pass', count)
  events.on('test:fail', event => {
    hasFailed = true
    count(event)
  })
  events.on('test:complete', ({ nesting, name }) => nesting === 0 && running.delete(name))
  setTimeout(() => {
    console.log(`FAILED: the tests did not end within ${deadlineMinutes} minutes; running: ${[...running].join(', ')}`)
    process.exit(1)
  }, deadlineMinutes * 60_000).unref()
  const report = events.compose(spec)
  for await (const text of report) process.stdout.write(text as string)
  const slowest = [...spent].toSorted(([, one], [, other]) => other - one).slice(0, 20)
  console.log('slowest files, in seconds:')
  await etcd?.close()
  for (const [file, ms] of slowest) console.log(`${(ms / 1000).toFixed(1).padStart(7)} ${relative(root, file)}`)
  return hasFailed
}

type TestEvent = {
  readonly nesting: number
  readonly file?: string | undefined
  readonly details: { readonly duration_ms: number }
}
