// `platform audit hash`: reads a value from stdin and prints what the audit log shows in its place, so that it can be found there.

import { readSettings } from '../apiserver/settings.ts'
import { UsageError } from '../host/command.ts'
import { fileProblem } from '../host/fs-errors.ts'
import { saltFileIn } from '../serving/audit-log.ts'
import { hashWith, saltIn } from '../serving/audit-redact.ts'

type Streams = { readonly input: AsyncIterable<Buffer>; readonly print: (line: string) => void }

/** The value is never an argument: those are seen by everyone on the machine. */
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
  if (bytes.length === 0) throw new Error('there is nothing on stdin; pipe the value in: platform audit hash < FILE')
  const line = bytes.at(-1) === 10 ? bytes.subarray(0, -1) : undefined
  // Echo adds a line break and editors do; both readings are worth a look.
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
    throw new UsageError([`cannot hash as the server does: ${fileProblem(file, error)}; --data names its directory`])
  }
}
