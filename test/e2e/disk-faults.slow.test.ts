// A slice of the proof in test/prove: power fails between a write and its fsync, and disks that fail and come back under a running server.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runDiskFault } from '../prove/disk-faults.ts'
import { runPowerLoss } from '../prove/power-loss.ts'
import { proofsOf } from '../prove/proofs.ts'
import { openFiu } from '../support/fiu.ts'
import { notRun } from '../support/missing-tool.ts'

const seed = process.env['PROVE_SEED'] ?? String(Date.now())

test(`whatever sectors are lost in a power failure, the store opens with all acknowledged writes and no partial ones (seed ${seed})`, context => {
  const { disks } = runPowerLoss({ commits: 8, seed })
  context.diagnostic(`${disks} disks`)
  assert.ok(disks > 100)
})

const fiu = await openFiu()
if (fiu) test.after(fiu.close)
else notRun('libfiu')

for (const name of ['fsync fails (EIO)', 'the disk is full (ENOSPC)', 'the disk became read-only (EROFS)'])
  if (fiu)
    test(`while ${name}, writes get 503 and reads work; then it recovers by itself with nothing lost (seed ${seed})`, {
      timeout: 120_000,
    }, async context => {
      const { refused, reads, recovery, problems } = await runDiskFault(fiu, name, seed)
      assert.deepEqual(problems, [])
      assert.ok(refused >= 50 && reads > 0, `${refused} writes refused, ${reads} reads`)
      context.diagnostic(`${refused} writes refused, ${reads} reads answered, a write ${Math.round(recovery)} ms after`)
    })

test('the table of the proof uses the singular for one', async () => {
  const proofs = proofsOf(0.001).filter(({ name }) => name === 'power' || name === 'store')
  assert.equal(proofs.length, 2)
  for (const { run } of proofs)
    for (const { what, found } of await run('one'))
      assert.doesNotMatch(`${what}: ${found}`, /(?<![\d,.])1 (\w+ )?\w+s\b/)
})
