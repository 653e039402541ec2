// A violated invariant: which one, what happened, and how to reproduce it. The checks throw it, and the runner adds the position.

/** The invariants, one sentence each. */
export const invariants = {
  conservation: 'a step by attackers never gives them more than they could reach before',
  bound: 'the server allows nothing that the model denies',
  impersonation: 'no access key, rotation or token is created while impersonating (D62)',
  lifetime: 'no key that a non-administrator creates, rotates or changes ends later than the credential used (D62)',
  'data flow': 'a ProjectSecret has data only of the SharedSecret that it follows (D61)',
  tokens: 'a token does not outlive the secret it was minted with (D22)',
  objects: 'nothing vanishes or changes that nobody with the right to do so deleted or changed',
  answers: 'no answer shows an attacker data or secrets it may not read',
  machines: 'a machine creates, changes and rotates no access keys (D67)',
  'sign-ins': 'only the server writes sessions, exchanged keys and the sign-in of a key (D64, D66)',
  'brought keys':
    'only administrators choose the secret of a key, each secret has one key, and no other answer tells whether it exists (D12, D62)',
  delivery: 'a connected cluster gets only roles and secrets that those who sent them may send (D68, D69)',
  'scoped keys': 'a scoped key changes no access, owner, role, binding or team membership (D25)',
} as const
export type Invariant = keyof typeof invariants

export class Violation extends Error {
  readonly invariant: Invariant
  constructor(invariant: Invariant, what: string) {
    super(`${what}. Broken: ${invariants[invariant]}`)
    this.name = 'Violation'
    this.invariant = invariant
  }
}
