// Keys and tokens that the server shows once, in the answer to the write that made them. Commands that make objects ask.

import type { Resource } from '../../api/object.ts'
import type { Io } from '../../host/command.ts'

/** undefined: there is nothing in it that no other answer will show. */
export function shownOnce({ spec, status }: Resource): string | undefined {
  const secret = spec?.['key'] ?? status?.['token']
  return typeof secret === 'string' && secret ? secret : undefined
}

/** The server's hint is for kubectl: here the key or the token is printed anyway. */
export const warnings = (io: Io) => (text: string) => {
  if (!/^the (key is in spec\.key|token is in status\.token) /.test(text)) io.err(`platform: warning: ${text}\n`)
}

export const lostBy = (output: string, { kind, metadata }: Resource) =>
  kind === 'OwnedAccessKey'
    ? `platform: warning: -o ${output} does not print the key, which is shown this once; platform rotate accesskey ${metadata.name} makes another\n`
    : `platform: warning: -o ${output} does not print the token, which is shown this once\n`
