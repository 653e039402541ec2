// Chooses the CA for a new context: from a file, by fingerprint, or by confirmation at a terminal.

import { type Io, UsageError } from '../../host/command.ts'
import {
  authorityIn,
  certificateIn,
  fetchCertificates,
  fingerprintOf,
  type PeerCertificates,
  withFingerprint,
} from './trust.ts'

type Trust = {
  readonly file: { readonly name: string; readonly text: string } | undefined
  readonly fingerprint: string | undefined
  readonly known: string | undefined
}

/** Returns undefined if this machine already trusts the server. Sends no key. */
export async function chooseCa(io: Io, server: string, { known, ...given }: Trust): Promise<string | undefined> {
  const { file, fingerprint: wanted } = given
  if (file) return certificateIn(file.text, file.name, wanted)
  const seen = await fetchCertificates(server, io.env)
  if (wanted) return withFingerprint(seen, server, wanted).toString()
  if (seen.isTrusted) return undefined
  const authority = authorityIn(seen)
  if (known && authority?.toString().trim() === known.trim()) return known
  return promptForTrust(io, server, seen, known !== undefined)
}

async function promptForTrust(io: Io, server: string, seen: PeerCertificates, hasChanged: boolean): Promise<string> {
  const authority = authorityIn(seen)
  if (!authority) throw new UsageError([`${server} does not send its CA: pass it with --ca-file FILE`])
  const changed = hasChanged ? `The CA of ${server} is not the one you trusted before.\n` : ''
  const fingerprint = fingerprintOf(authority)
  if (!io.ask)
    throw new UsageError([
      ...(changed ? [changed.trim()] : []),
      `cannot ask without a terminal whether to trust ${server}: use --ca-file FILE or --ca-fingerprint sha256:…`,
    ])
  io.err(`${changed}The CA of ${server} is unknown. Its fingerprint:\n  ${fingerprint}\n`)
  io.err('It must match the fingerprint that the server printed at its first start.\n')
  const answer = await io.ask('Trust it? [y/N] ')
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error('not trusted; nothing was sent')
  return authority.toString()
}
