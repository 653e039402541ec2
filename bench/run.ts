// `npm run bench`: the measured claims, as ratios inside one run against a bare node:https server (docs/BENCH.md).
//   npm run bench [WORD] [-- --record]   WORD: one part, or the rows whose name contains it
//   npm run bench -- --draw              the page and its charts again from the record; measures nothing

import { parseArgs } from 'node:util'
import { measureAgent } from './agent.ts'
import { measureAuthorize } from './authorize.ts'
import { measureCli } from './cli.ts'
import { measureConsole } from './console.ts'
import { measureCurves } from './curves.ts'
import { measureEtcd } from './etcd.ts'
import { measureGateway } from './gateway.ts'
import { generator } from './load.ts'
import { lookAtMachine } from './machine-info.ts'
import type { Figure, Measured } from './measurement.ts'
import { measurePatches } from './patches.ts'
import { measureRights } from './permissions.ts'
import { measureRates, rateNames, rounds } from './rates.ts'
import { merge } from './record.ts'
import { readRecord, writeRecord } from './record-files.ts'
import { measureScale } from './scale.ts'
import { measureSync } from './sync.ts'
import { measureWatch } from './watch.ts'

const parts: { readonly [name: string]: (seconds: number) => Promise<Measured> } = {
  watch: measureWatch,
  authorize: measureAuthorize,
  rights: measureRights,
  patches: measurePatches,
  gateway: measureGateway,
  scale: measureScale,
  curves: measureCurves,
  sync: measureSync,
  agent: measureAgent,
  cli: measureCli,
  console: measureConsole,
  etcd: measureEtcd,
}
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { record: { type: 'boolean', default: false }, draw: { type: 'boolean', default: false } },
})
const [word = ''] = positionals
const rateWord = word === 'rates' ? '' : word
const hasRates = rateNames.some(name => name.includes(rateWord))

if (values.draw) writeRecord(readRecord())
else if (!hasRates && !parts[word]) {
  console.error(`nothing is called ${word}; there are ${[...rateNames, 'rates', ...Object.keys(parts)].join(', ')}`)
  process.exitCode = 2
} else await run()

async function run(): Promise<void> {
  const seconds = Number(process.env['BENCH_SECONDS'] ?? 3)
  const machine = lookAtMachine()
  const figures: Figure[] = []
  const show = ({ text, figures: more }: Measured) => {
    console.log(text)
    figures.push(...more)
  }
  console.log(`load generator: ${generator}; ${rounds} rounds of ${seconds} s each, medians`)
  if (hasRates) show(await measureRates(seconds, rateWord))
  for (const [name, measure] of Object.entries(parts)) if (!word || word === name) show(await measure(seconds))
  if (values.record) writeRecord(merge(readRecord(), figures, machine.done()))
}
