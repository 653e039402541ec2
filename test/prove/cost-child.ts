// The cost prover as a program, for cost/in-child.ts and for manual runs. It prints one line of JSON.
//   node test/prove/cost-child.ts               measures everything
//   node test/prove/cost-child.ts --only TEXT   measures inputs whose name contains the text
//   node test/prove/cost-child.ts --row NAME    measures one row of cost/rows.ts

import { parseArgs } from 'node:util'
import type { RowReport } from './cost/in-child.ts'
import { rows } from './cost/rows.ts'
import { proveCost } from './cost/run.ts'
import { openSystem } from './cost/system.ts'

const { values } = parseArgs({ options: { row: { type: 'string' }, only: { type: 'string', default: '' } } })

async function measureRow(name: string): Promise<RowReport> {
  const row = rows[name]
  if (!row) throw new Error(`unknown row "${name}"; known: ${Object.keys(rows).join('; ')}`)
  const system = await openSystem()
  try {
    const problem = await row(system)
    return problem === undefined ? {} : { problem }
  } finally {
    await system.close()
  }
}

console.log(
  JSON.stringify(
    values.row === undefined ? await proveCost(what => what.includes(values.only)) : await measureRow(values.row),
  ),
)
