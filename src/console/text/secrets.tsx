// Words of the pages of secrets.

import { counted } from './plural.ts'

export const secretText = {
  data: (version: number) => `Data, version ${version}`,
  key: 'Key',
  value: 'Value',
  follows: (name: string) => (
    <>
      The data comes from the global secret <code>{name}</code>, and follows it.
    </>
  ),
  newKey: 'New key',
  keyRule: 'Use letters, digits, dots, dashes and underscores.',
  keyExists: 'This key exists already.',
  newValue: (key: string) => `New value of ${key}`,
  notText:
    'This value is not text, or has carriage returns. Remove the key and add it again, or change it with kubectl.',
  hidden: 'hidden',
  removed: 'removed',
  base64: (value: string) => `(base64) ${value}`,
  reveal: 'Reveal',
  revealNamed: (key: string) => `Reveal ${key}`,
  hide: 'Hide',
  hideNamed: (key: string) => `Hide ${key}`,
  edit: 'Edit',
  editNamed: (key: string) => `Edit ${key}`,
  undo: 'Undo',
  undoNamed: (key: string) => `Undo the change of ${key}`,
  yourChange: (version: number) => `Your change against version ${version}`,
  changedKeys: (number: number) => `${counted(number, 'key', 'keys')} changed, values hidden`,
  createdAgain:
    'Somebody has deleted this secret and created it again since you began. Copy what you need, and discard your changes.',
  changedMeanwhile: 'Somebody has changed the data since you began. Saving keeps their changes to other keys.',
  conflict: 'Somebody else changed the same keys',
  conflictAdvice: 'Choose for each key. Keys that only you changed are saved in any case.',
  maybeConflict: 'Somebody else may have changed the same keys',
  maybeConflictAdvice:
    'The data has changed since you began, and its history no longer has all of these changes. Choose for each key.',
  keepTheirs: 'Keep theirs',
  useMine: 'Use mine',
  whoCanRead: 'Who can read it',
  whoIsHidden: 'You may not see who can.',
  lastRead: 'Last read',
  whoRead: 'Who read it',
  share: 'Share',
  shareNamed: (name: string) => `Share ${name} with a team`,
  team: 'Team',
  theyMay: 'They may',
  rights: { read: 'get', change: 'get and update' },
  versions: 'Versions',
  columns: { version: 'Version', keys: 'Keys', who: 'Who', when: 'When' },
  current: 'current',
  restores: (version: number) => `restores ${version}`,
  withKey: (key: string) => `with key ${key}`,
  compare: 'Compare',
  compareNamed: (version: number) => `Compare version ${version} with the one before`,
  rollBack: 'Roll back',
  rollBackNamed: (version: number) => `Roll back to version ${version}`,
  rollBackQuestion: (kind: string, name: string, version: number) => `Roll ${kind} ${name} back to version ${version}?`,
  rollBackAdvice: (version: number) => `The data of version ${version} becomes a new version. No version is lost.`,
  against: (from: number, to: number) => `Version ${from} against version ${to}`,
  differing: (number: number) => counted(number, 'key differs', 'keys differ'),
  noKey: '(no such key)',
  revealBoth: (key: string) => `Reveal both values of ${key}`,
  hideBoth: (key: string) => `Hide both values of ${key}`,
} as const
