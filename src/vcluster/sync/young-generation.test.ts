// A process that makes much that lives for a while, with the bound and without.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exec } from '../../../test/support/exec.ts'

const work = `
  let kept = []
  for (let round = 0; round < 400; round++) {
    kept.push(Array.from({ length: 5000 }, (_, index) => ({ index, text: 'x' + index })))
    if (kept.length > 12) kept = kept.slice(6)
    await new Promise(resolve => setTimeout(resolve))
  }
  const { getHeapSpaceStatistics } = await import('node:v8')
  console.log(getHeapSpaceStatistics().find(space => space.space_name === 'new_space').space_size / 2 ** 20)`
const bound = `import { boundYoungGeneration } from '${new URL('./young-generation.ts', import.meta.url)}'
  boundYoungGeneration()`

async function megabytes(program: string): Promise<number> {
  const { code, stdout, stderr } = await exec(process.execPath, ['--input-type=module', '--eval', program])
  assert.equal(code, 0, stderr)
  return Number(stdout)
}

test('the room for short-lived objects stays at 16 MB, where it would grow to more', async () => {
  assert.equal(await megabytes(`${bound}\n${work}`), 16)
  assert.ok((await megabytes(work)) > 16)
})
