// Which CA a new context is held to: by file, by fingerprint, or because a person said so at a terminal. login.ts asks before it sends a key.

import { type Io, UsageError } from '../../host/command.ts'
import { authorityIn, certificateIn, fingerprintOf, lookAt, type Seen, withFingerprint } from './trust.ts'

type Trust = {
  readonly file: { readonly name: string; readonly text: string } | undefined
  readonly fingerprint: string | undefined
  readonly known: string | undefined
}

/** The CA to hold the server to; undefined where the machine trusts it anyway. No key has been sent when this answers. */
export async function trusted(io: Io, server: string, { known, ...given }: Trust): Promise<string | undefined> {
  const { file, fingerprint: wanted } = given
  if (file) return certificateIn(file.text, file.name, wanted)
  const seen = await lookAt(server, io.env)
  if (wanted) return withFingerprint(seen, server, wanted).toString()
  if (seen.isTrusted) return undefined
  const authority = authorityIn(seen)
  if (known && authority?.toString().trim() === known.trim()) return known
  return asked(io, server, seen, known !== undefined)
}

async function asked(io: Io, server: string, seen: Seen, hasChanged: boolean): Promise<string> {
  const authority = authorityIn(seen)
  if (!authority) throw new UsageError([`${server} does not send its CA along: give it with --ca-file FILE`])
  const changed = hasChanged ? `The CA of ${server} is not the one that you trusted before.\n` : ''
  const fingerprint = fingerprintOf(authority)
  if (!io.ask)
    throw new UsageError([
      ...(changed ? [changed.trim()] : []),
      `nobody can be asked whether ${server} is to be trusted: give --ca-file FILE or --ca-fingerprint sha256:…`,
    ])
  io.err(`${changed}${server} is not known here. The fingerprint of its CA:\n  ${fingerprint}\n`)
  io.err('Its first start printed one; they must be the same.\n')
  const answer = await io.ask('Trust it? [y/N] ')
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error('not trusted; nothing was sent')
  return authority.toString()
}
