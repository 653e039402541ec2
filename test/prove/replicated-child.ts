// The replicated consistency prover as a program, for replicated/in-child.ts and for manual runs. It prints one line of JSON.
//   node test/prove/replicated-child.ts --seed S --operations N [--fault NAME… | --no-faults] [--namespace] [--bug NAME] [--keep DIRECTORY]

import { parseArgs } from 'node:util'
import { begin } from './begin-bug.ts'
import { type FaultName, faultNames } from './replicated/faults.ts'
import { runReplicated } from './replicated/run.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now()) },
    operations: { type: 'string', default: '10000' },
    fault: { type: 'string', multiple: true },
    'no-faults': { type: 'boolean', default: false },
    namespace: { type: 'boolean', default: false },
    bug: { type: 'string' },
    keep: { type: 'string' },
  },
})
const unknown = values.fault?.find(name => !faultNames.includes(name as FaultName))
if (unknown !== undefined) throw new Error(`unknown fault "${unknown}"; known: ${faultNames.join(', ')}`)
process.on('uncaughtException', end)
const report = await runReplicated({
  seed: values.seed,
  operations: Number(values.operations),
  isInNamespace: values.namespace,
  ...(values.fault || values['no-faults'] ? { faults: (values.fault ?? []) as FaultName[] } : {}),
  ...(values.keep ? { keep: values.keep } : {}),
  ...(values.bug ? { begin: begin(values.bug) } : {}),
}).catch(end)
console.log(JSON.stringify(report))
process.exit()

function end(error: unknown): never {
  // The message can contain the whole log of a replica, which is more than a pipe takes before the process ends. in-child.ts reports this line.
  const lines = String(error).split('\n')
  console.error(
    `reason: ${lines
      .filter(line => !/^$|"level":[34]0/.test(line))
      .slice(0, 4)
      .join(' ')}`,
  )
  console.error(error)
  process.exit(1)
}
