// 500 deaths of a whole server under writers, with a new seed each time; the seed is told, so that a failure can be seen again.

import { test } from 'node:test'
import { runCrashes } from './crashes.ts'

const seed = process.env['PROVE_SEED'] ?? String(Date.now())
const kills = Number(process.env['PROVE_KILLS'] ?? 500)

test(`nothing acknowledged is lost, nothing is half there: ${kills} deaths from seed ${seed}`, async context => {
  const { writes, events, at } = await runCrashes(kills, seed)
  context.diagnostic(`${writes} acknowledged writes, ${events} events; died at ${[...new Set(at)].join(', ')}`)
})
