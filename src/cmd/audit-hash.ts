// `platform audit hash`: prints the hash that the audit log shows instead of a value.

import { readSettings } from '../apiserver/settings.ts'
import { UsageError } from '../host/command.ts'
import { fileProblem } from '../host/fs-errors.ts'
import { saltFileIn } from '../serving/audit-log.ts'
import { hashWith, saltIn } from '../serving/audit-redact.ts'

type Streams = { readonly input: AsyncIterable<Buffer>; readonly print: (line: string) => void }

/** Reads the value from standard input, because other users of the machine can see arguments. */
export async function auditHash(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  { input, print }: Streams = { input: process.stdin, print: console.log },
): Promise<void> {
  const settings = await readSettings(args, env)
  const hash = hashWith(saltOf(saltFileIn(settings.data)))
  const chunks: Buffer[] = []
  for await (const chunk of input) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  if (bytes.length === 0) throw new Error('nothing on stdin; pipe the value: platform audit hash < FILE')
  const line = bytes.at(-1) === 10 ? bytes.subarray(0, -1) : undefined
  // echo and editors add a line break, so print the hashes with and without it.
  if (line?.length) printBoth(line, '')
  printBoth(bytes, line?.length ? ', with its line break' : '')

  function printBoth(value: Buffer, how: string): void {
    print(`${hash(value.toString())}  the value${how}`)
    print(`${hash(value.toString('base64'))}  its base64, as in a secret's data${how}`)
  }
}

function saltOf(file: string): Buffer {
  try {
    return saltIn(file, false)
  } catch (error) {
    throw new UsageError([
      `cannot read the salt of the server: ${fileProblem(file, error)}; set --data to its directory`,
    ])
  }
}
