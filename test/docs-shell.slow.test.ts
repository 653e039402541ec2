// Runs the shell blocks of all documents in order, each document in a shell of its own. docs.test.ts explains the fences.

import { globSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { blocksOf, openShell, readDocument, runBlocks } from './support/docs.ts'
import { exec } from './support/exec.ts'
import { findKubectls } from './support/kubectl.ts'
import { notRun } from './support/missing-tool.ts'

const root = join(import.meta.dirname, '..')
const documents = ['README.md', ...globSync('docs/**/*.md', { cwd: root }).toSorted()]
const [kubectl] = (await findKubectls()).toReversed()
const { code: withoutCurl } = await exec('curl', ['--version'])
if (!kubectl) notRun('kubectl ≥ 1.29')
else if (withoutCurl) notRun('curl')
else
  suite('shell blocks run and print the output on the page', { concurrency: true }, () => {
    for (const path of documents) {
      const count = blocksOf(readDocument(path)).filter(({ how }) => how === 'sh' || how === 'sh background').length
      if (count) test(`${path}: ${count} blocks`, () => runAll(kubectl.file, path))
    }
  })

async function runAll(kubectlFile: string, path: string): Promise<void> {
  const shell = await openShell(kubectlFile)
  try {
    await runBlocks(shell, path)
  } finally {
    await shell.close()
  }
}
