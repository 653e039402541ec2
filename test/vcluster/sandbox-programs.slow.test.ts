// 2,000 programs made by chance, and the sandbox's own rules: batches, limits, threads.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openSandbox } from '../../src/vcluster/patch/sandbox.ts'
import { runPrograms } from './sandbox-programs-run.ts'

test('2,000 generated programs all get a result, memory is bounded, and each next evaluation is correct', async () => {
  const outcomes = await runPrograms(2000, 20_260_101)
  const total = Object.values(outcomes).reduce((sum, one) => sum + one, 0)
  assert.equal(total, 4000)
  for (const kind of ['value', 'threw', 'result', 'time'])
    assert.ok(outcomes[kind], `${kind}: ${JSON.stringify(outcomes)}`)
})

const sandbox = openSandbox({ workers: 2 })
after(() => sandbox.close())

test('every value of a batch has its own result, in order, whatever happened to the others', async () => {
  const values = [1, 'two', null, [3], { four: 4 }]
  const results = await sandbox.evaluate({ expression: 'value.length ? value : value.nothing.more', values })
  assert.deepEqual(
    results.map(result => ('value' in result ? result.value : result.reason)),
    ['threw', 'two', 'threw', [3], 'threw'],
  )
})

test('a batch larger than one message is complete', async () => {
  const values = Array.from({ length: 20_000 }, (_, index) => ({ index, text: 'x'.repeat(50) }))
  const results = await sandbox.evaluate({ expression: 'value.index + 1', values })
  assert.deepEqual(
    results,
    values.map(({ index }) => ({ value: index + 1 })),
  )
  assert.deepEqual(await sandbox.evaluate({ expression: 'value', values: [] }), [])
})

test('values of a batch that times out are evaluated one by one, to find the slow one', async () => {
  // On a busy machine, one by one may take long. The limit for all of them is the subject of the next test.
  const patient = openSandbox({ workers: 1, limits: { totalMs: 600_000 } })
  after(() => patient.close())
  // Each value takes a part of what one may take, also on a busy machine; all of them more than all may take together.
  const slow = '(() => { let n = 0; for (let i = 0; i < 2000; i++) n += i; return n + value })()'
  const results = await patient.evaluate({
    expression: slow,
    values: Array.from({ length: 1500 }, (_, index) => index),
  })
  assert.deepEqual(
    results.find(result => !('value' in result)),
    undefined,
  )
  const one = await patient.evaluate({
    expression: 'value === 2 ? (() => { while (true) {} })() : value',
    values: [0, 1, 2, 3],
  })
  assert.deepEqual(one, [
    { value: 0 },
    { value: 1 },
    { reason: 'time', message: 'took longer than 50 ms' },
    { reason: 'time', message: 'not evaluated, because an earlier value failed' },
  ])
})

test('values that are evaluated one by one have a limit for all of them', async () => {
  const impatient = openSandbox({ workers: 1, limits: { totalMs: -1 } })
  after(() => impatient.close())
  const results = await impatient.evaluate({ expression: '(() => { while (true) {} })()', values: [0, 1] })
  assert.deepEqual(results, [
    { reason: 'time', message: 'all matches together took longer than -1 ms' },
    { reason: 'time', message: 'not evaluated, because an earlier value failed' },
  ])
})

test('evaluations that wait behind an attack get their results', async () => {
  const attack = { expression: 'Array(2 ** 32 - 1).sort()', values: [1] }
  const fine = { expression: 'value + 1', values: [1] }
  const results = await Promise.all([attack, attack, attack, fine, fine, fine].map(sandbox.evaluate))
  assert.deepEqual(results.slice(3), Array(3).fill([{ value: 2 }]))
})

test('a closed sandbox rejects evaluations', async () => {
  const closed = openSandbox({ workers: 1 })
  await closed.evaluate({ expression: 'value', values: [1] })
  await closed.close()
  await assert.rejects(closed.evaluate({ expression: 'value', values: [1] }), /the sandbox is closed/)
})

test('the same inputs give the same result in every thread', async () => {
  const expression =
    '[new Date(5).toString(), Object.keys(value), new Error("x").stack, [3, 1, 2].sort(), (0.1).toFixed(20)]'
  const one = { expression, values: [{ b: 1, a: 2 }] }
  const results = await Promise.all(Array.from({ length: 8 }, () => sandbox.evaluate(one)))
  for (const result of results) assert.deepEqual(result, results[0])
})
