// Reads an access key that the user gives: on standard input, in the environment, or at a prompt.

import { ApiError } from '../../api/errors.ts'
import { type Io, UsageError } from '../../host/command.ts'
import { isMistyped } from '../../kinds/key-format.ts'
import { readConnection } from '../session.ts'
import { serverOf } from './trust.ts'

export async function keyFrom(io: Io, server: string, isStdin: boolean): Promise<string> {
  // A terminal would echo the key.
  const isPrompt = isStdin && io.ask !== undefined
  const given = isPrompt ? undefined : isStdin ? await readInput(io) : io.env['PLATFORM_ACCESS_KEY']
  if (given === undefined && !io.ask)
    throw new UsageError([
      'the key is missing: pass it on standard input with --access-key -, or in PLATFORM_ACCESS_KEY',
      `no identity provider is configured on ${server}, so only an access key can sign in`,
    ])
  const text = (given ?? (await io.ask?.('Access key: ', 'hidden')) ?? '').trim()
  const { key, server: its } = readConnection(text, 'the input')
  if (its !== undefined && serverOf(its) !== server)
    throw new UsageError([`the key is for ${serverOf(its)} and was not sent to ${server}`])
  if (!key) throw new UsageError(['the key is empty'])
  if (/[^\x21-\x7e]/.test(key) || key.length > 4000)
    throw new UsageError(['the input is not an access key: it contains invalid characters or is too long'])
  if (isMistyped(key)) throw new ApiError(401, 'Unauthorized', 'the key is mistyped: its checksum does not match')
  return key
}

const readInput = async ({ readFile }: Io) => new TextDecoder().decode(await readFile('-'))
