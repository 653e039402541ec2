// Words of the patch playground.

import { counted } from './plural.ts'

const patch = (index: number) => `Patch ${index + 1}`

export const patchText = {
  about: 'The server evaluates the patches in its sandbox. Nothing is stored, and no cluster is touched.',
  fromLink: 'This input came with the link. Read it before you run it.',
  notServed: 'this server has no patch previews',
  direction: 'Direction',
  run: 'Run',
  running: 'Running…',
  copyLink: 'Copy a link to this input',
  object: 'Object',
  patches: 'Patches',
  objectProblem: (problem: string) => `Object: ${problem}`,
  patchesProblem: (problem: string) => `Patches: ${problem}`,
  patch,
  place: (line: number, column: number | undefined) => `line ${line}, column ${column ?? 1}`,
  roundTrip: 'Round trip',
  givesBack: 'gives back the original',
  doesNotGiveBack: 'does not give back the original',
  trace: 'Trace',
  result: 'Result',
  back: 'And back',
  backResult: 'Result of the reverse direction',
  fixpoint: 'Does it settle?',
  settles: (rounds: number) => `settles after ${counted(rounds, 'round', 'rounds')}`,
  neverSettles: (rounds: number) => `never settles: still changing after ${counted(rounds, 'round', 'rounds')}`,
  keepsChanging: (patches: readonly number[], path: string, side: string) => (
    <>
      {patches.map(patch).join(' and ') || 'Something'} keeps changing <code>{path}</code> of the {side} object. Make{' '}
      <code>reverseExpression</code> undo <code>expression</code>.
    </>
  ),
  unmatched: 'No field has this path.',
  absent: '(absent)',
  removed: '(removed)',
} as const
