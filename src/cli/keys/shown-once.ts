// Extracts keys and tokens that the server returns only once, in the response to their creation.

import type { Resource } from '../../api/object.ts'
import type { Io } from '../../host/command.ts'

/** Returns undefined if the object has no such value. */
export function shownOnce({ spec, status }: Resource): string | undefined {
  const secret = spec?.['key'] ?? status?.['token']
  return typeof secret === 'string' && secret ? secret : undefined
}

/** Drops the server's hint for kubectl users: this program prints the key or token anyway. */
export const warnings = (io: Io) => (text: string) => {
  if (!/^the (key is in spec\.key|token is in status\.token) /.test(text)) io.err(`platform: warning: ${text}\n`)
}

export const notPrinted = (output: string, { kind, metadata }: Resource) =>
  kind === 'OwnedAccessKey'
    ? `platform: warning: -o ${output} does not print the key, which is shown only once; create another with platform rotate accesskey ${metadata.name}\n`
    : `platform: warning: -o ${output} does not print the token, which is shown only once\n`
