// Explains why the server cannot listen on an address. The caller adds the setting to change.

const reasons: { readonly [code: string]: string } = {
  EADDRNOTAVAIL: 'not an address of this machine',
  ENOTFOUND: 'unknown host name',
  EAI_AGAIN: 'the host name cannot be resolved at the moment',
  EACCES: 'permission denied: ports below 1024 are privileged',
}

/** `holder`: the program that uses the address already. */
export function listenError(address: string, error: NodeJS.ErrnoException, holder = 'another program'): string {
  const { code = '', message } = error
  if (code === 'EADDRINUSE') return `cannot listen on ${address}: in use by ${holder}`
  const reason = Object.hasOwn(reasons, code) ? reasons[code] : undefined
  return `cannot listen on ${address}: ${reason ?? message}`
}
