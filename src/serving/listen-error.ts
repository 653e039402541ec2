// Explains why an address cannot be listened on. The caller adds the setting to change.

const reasons: { readonly [code: string]: string } = {
  EADDRNOTAVAIL: 'is not an address of this machine',
  ENOTFOUND: 'has a name that is not known here',
  EAI_AGAIN: 'has a name that cannot be looked up now',
  EACCES: 'permission denied: ports below 1024 are privileged',
}

/** `holder`: who has it, where somebody does. */
export function listenError(address: string, error: NodeJS.ErrnoException, holder = 'another program'): string {
  const { code = '', message } = error
  if (code === 'EADDRINUSE') return `${address} is in use by ${holder}`
  const reason = Object.hasOwn(reasons, code) ? reasons[code] : undefined
  return reason ? `${address} ${reason}` : `${address} cannot be listened on: ${message}`
}
