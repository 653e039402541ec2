// Patches: evaluations per second in a batch, and objects per second from end to end, with the sandbox's share of the time.

import { openPatcher } from '../src/vcluster/patch/apply.ts'
import type { Patch } from '../src/vcluster/patch/patch.ts'
import { openSandbox, type Sandbox } from '../src/vcluster/patch/sandbox.ts'
import { type Figure, type Measured, median } from './measurement.ts'

const wanted = { evaluations: 200_000, objects: 2_000 }
const rounds = 5

const patches: readonly Patch[] = [
  { path: 'metadata.annotations["example.com/owner"]', expression: '"team-" + value' },
  { path: 'subsets[*].addresses[*].hostname', expression: 'value.toLowerCase() + "." + context.vcluster.name' },
]
const addresses = Array.from({ length: 10 }, (_, index) => ({ ip: `10.0.0.${index}`, hostname: `WEB-${index}` }))
const endpoints = (index: number) => ({
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: `web-${index}`, namespace: 'default', annotations: { 'example.com/owner': `blue-${index}` } },
  subsets: [{ addresses, ports: [{ port: 80 }] }],
})

export async function measurePatches(): Promise<Measured> {
  const sandbox = openSandbox()
  try {
    const rows = [await evaluations(sandbox), await objects(sandbox)]
    return { text: rows.map(({ line }) => `patches: ${line}`).join('\n'), figures: rows.map(({ figure }) => figure) }
  } finally {
    await sandbox.close()
  }
}

type Row = { readonly line: string; readonly figure: Figure }

async function evaluations(sandbox: Sandbox): Promise<Row> {
  const values = Array.from({ length: 100_000 }, (_, index) => `value-${index}`)
  const before = process.cpuUsage()
  let done = 0
  const rates = await repeat(async () => {
    await sandbox.evaluate({ expression: '"prefix-" + value', values })
    done += values.length
    return values.length
  })
  const { user, system } = process.cpuUsage(before)
  const each = ((user + system) / done).toFixed(1)
  const line = `${show(rates)} evaluations/s in a batch (wanted ${wanted.evaluations.toLocaleString('en')}); ${each} µs of a core each`
  return { line, figure: figureOf('evaluations', rates, `${each} µs of a core each`) }
}

/** Many at a time, like the shards of the syncer. */
async function objects(inner: Sandbox): Promise<Row> {
  let inside = 0
  const sandbox: Sandbox = {
    ...inner,
    evaluate: async batch => {
      const start = performance.now()
      const results = await inner.evaluate(batch)
      inside += performance.now() - start
      return results
    },
  }
  const lanes = 8
  const patcher = openPatcher({ patches, vcluster: { name: 'vc', namespace: 'team', config: {} }, sandbox })
  let all = 0
  let done = 0
  const before = process.cpuUsage()
  const rates = await repeat(async () => {
    const count = 2_000
    let next = 0
    const lane = async () => {
      while (next < count) {
        const object = endpoints(next++)
        const start = performance.now()
        const { problem } = await patcher.toHost({ virtualObject: object, hostObject: null, object })
        all += performance.now() - start
        if (problem) throw new Error(problem.message)
      }
    }
    await Promise.all(Array.from({ length: lanes }, lane))
    done += count
    return count
  })
  const { user, system } = process.cpuUsage(before)
  const share = Math.round((inside / all) * 100)
  const note = `${share} % of it in the sandbox; ${Math.round((user + system) / done)} µs of a core each`
  const line = `${show(rates)} objects/s, 2 patches and 11 evaluations each (wanted ${wanted.objects.toLocaleString('en')}); ${note}`
  return { line, figure: figureOf('objects', rates, note) }
}

async function repeat(work: () => Promise<number>): Promise<number[]> {
  await work()
  const rates: number[] = []
  for (let round = 0; round < rounds; round++) {
    const start = performance.now()
    const count = await work()
    rates.push((count / (performance.now() - start)) * 1000)
  }
  return rates
}

const show = (rates: readonly number[]) => Math.round(median(rates)).toLocaleString('en')

const figureOf = (what: keyof typeof wanted, rates: readonly number[], note: string): Figure => ({
  name: `patches: ${what}`,
  value: median(rates),
  unit: `${what}/s`,
  wanted: wanted[what],
  direction: 'at-least',
  note,
})
