// Words of access keys and tokens.

export const keyText = {
  rotate: 'Rotate',
  rotateNamed: (name: string) => `Rotate ${name}`,
  rotateAdvice:
    'The server makes a new secret. The old one works until the overlap ends, so clients can switch without downtime.',
  overlap: 'The old key works for another',
  overlaps: {
    tenMinutes: '10 minutes',
    hour: '1 hour',
    day: '1 day',
    week: '7 days',
    none: 'no time: it ends at once',
  },
  forceAdvice: 'Rotating again ends the oldest secret at once.',
  force: 'Rotate, and end the oldest secret',
  disabled: 'This key is disabled. It does not grant access.',
  scope: 'What it may do',
  everything: (owner: string) => `Everything that ${owner} may do.`,
  scopeAsWritten: 'Scope as written',
  facts: 'Facts',
  owner: 'Acts as',
  type: 'Type',
  description: 'Description',
  extraGroups: 'Extra groups',
  lastUsed: 'Last used',
  expires: 'Expires',
  lifetime: 'Lifetime',
  afterLastUse: (lifetime: string) => `${lifetime} after the last use`,
  provider: 'Signed in with',
  groups: 'Groups',
  parent: 'Made with',
  rotation: 'A rotation is running',
  newKey: 'New key',
  oldKey: 'Old key',
  newKeyState: (id: string, lastUsed: string) => (
    <>
      <code>{id}</code>, {lastUsed ? `last used ${lastUsed}` : 'not used yet'}
    </>
  ),
  oldKeyState: (id: string, ends: string, lastUsed: string) => (
    <>
      <code>{id}</code>, ends {ends}, {lastUsed ? `last used ${lastUsed}` : 'not used'}
    </>
  ),
  isSwitched: 'clients use the new key',
  isNotSwitched: 'no client uses the new key yet',
  isOldUsed: (when: string) => `a client used the old key ${when}, after the rotation`,
  keyOf: (name: string) => `The key of ${name}`,
  shownOnce: 'The server does not show this key again. Store it now.',
  worksAt: (server: string) => (
    <>
      It works at <code>{server}</code>, as a bearer token or with <code>platform login</code>.
    </>
  ),
  download: 'Download',
  stored: 'I have stored the key',
  done: 'Done',
  token: 'A token for connected clusters',
  issueToken: 'Issue a token',
} as const
