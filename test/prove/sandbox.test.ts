// 20,000 generated programs with a new seed each time; the seed is told, so that a failure can be seen again.

import { test } from 'node:test'
import { runPrograms } from '../vcluster/sandbox-programs-run.ts'

const seed = Number(process.env['PROVE_SEED'] ?? Date.now() % 2 ** 31)

test(`20,000 generated programs from seed ${seed}`, async context => {
  context.diagnostic(JSON.stringify(await runPrograms(20_000, seed)))
})
