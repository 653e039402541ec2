// The name by which people recognize this machine in a list of sessions: user@host.

import { hostname, userInfo } from 'node:os'

const longest = 64

export function machineName(): string {
  return `${userName()}@${hostname()}`.replace(/[^\x21-\x7e]/g, '').slice(0, longest)
}

/** A container may run as a user id without an entry in /etc/passwd. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`
  }
}
