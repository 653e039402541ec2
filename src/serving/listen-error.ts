// Why an address cannot be listened on, in a sentence without its end: what to do about it is said by whoever knows the setting. serve-listen.ts and gateway-doors.ts ask.

const reasons: { readonly [code: string]: string } = {
  EADDRNOTAVAIL: 'is no address of this machine',
  ENOTFOUND: 'has a name that is not known here',
  EAI_AGAIN: 'has a name that cannot be looked up now',
  EACCES: 'may not be listened on by this user: ports below 1024 are for who has a right to them',
}

/** `holder`: who has it, where somebody does. */
export function listenError(address: string, error: NodeJS.ErrnoException, holder = 'another program'): string {
  const { code = '', message } = error
  if (code === 'EADDRINUSE') return `${address} is in use by ${holder}`
  const reason = Object.hasOwn(reasons, code) ? reasons[code] : undefined
  return reason ? `${address} ${reason}` : `${address} cannot be listened on: ${message}`
}
