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
const report = await runReplicated({
  seed: values.seed,
  operations: Number(values.operations),
  isInNamespace: values.namespace,
  ...(values.fault || values['no-faults'] ? { faults: (values.fault ?? []) as FaultName[] } : {}),
  ...(values.keep ? { keep: values.keep } : {}),
  ...(values.bug ? { begin: begin(values.bug) } : {}),
}).catch(error => {
  console.error(error)
  // The message can contain the whole log of a replica. in-child.ts reports this line.
  console.error(`reason: ${String(error).split('\n')[0]}`)
  process.exit(1)
})
console.log(JSON.stringify(report))
process.exit()
