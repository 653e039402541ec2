// Conservation and upper bound: attackers never gain permissions by their own steps, and the server allows no more than the model.

import type { Credential } from './credentials.ts'
import { ours } from './objects.ts'
import type { Prover } from './prover.ts'
import { scopeBits } from './scopes.ts'
import type { Change, Outcome } from './step.ts'
import {
  addBits,
  atoms,
  atomsOn,
  type Bits,
  bitsOf,
  bothBits,
  firstBeyond,
  hasBit,
  indexOf,
  names,
  noBits,
  printAtom,
  questions,
} from './universe.ts'
import { Violation } from './violation.ts'

/**
 * Permissions on a key object are harmless by themselves. A secret obtained with them is counted when an attacker has it.
 * Users may get their own User.
 */
const ownAtoms = bitsOf(
  ({ verb, group, resource, sub, name }) =>
    group === ours &&
    name !== '' &&
    (resource === 'ownedaccesskeys' || (resource === 'users' && verb === 'get' && !sub)),
)

/**
 * Members may get their team and its permissions (D26). Callers who may change the team may join it, or create a key of
 * it.
 */
const teamLooks = names.teams.map(name => ({
  change: ['update', 'patch'].map(verb => indexOf({ verb, group: ours, resource: 'teams', name })),
  look: bitsOf(one => one.resource === 'teams' && one.name === name && one.verb === 'get' && one.sub !== 'status'),
}))

export function checkConservation(prover: Prover, after: Bits, what: string, changes: readonly Change[]): void {
  const { reach: before } = prover
  const exempt = ownAtoms.slice()
  // The creator of an object owns it.
  for (const { type, cause, after: made } of changes)
    if (type === 'created' && cause === 'request' && made?.kind.shared)
      addBits(exempt, atomsOn(made.kind.plural, made.namespace, made.name).bits)
  for (const { change, look } of teamLooks) if (change.some(one => hasBit(before, one))) addBits(exempt, look)
  const gained = firstBeyond(after, before, exempt)
  if (gained >= 0)
    throw new Violation(
      'conservation',
      `the attackers gained "${nameOf(gained)}" by ${what}, through ${through(prover, gained)}`,
    )
}

/** The credential that has a permission now, for the report. */
function through({ coalition, credentials, rights }: Prover, index: number): string {
  for (const secret of coalition) {
    const credential = credentials.of(secret)
    if (credential && hasBit(rights.bitsOf(credential.principal), index)) return holder(credential)
  }
  return 'a sign-in, impersonation or a role that they may take'
}

/** The model must allow the caller everything that the server allows. */
export function checkRequest({ step, before, answer }: Outcome): void {
  const { allowed, ask, credential, principal } = before
  // Lists show objects that the caller may get.
  if (allowed || ask.verb === 'list') return
  const who = credential
    ? `"${principal?.username ?? 'somebody whom the caller may not impersonate'}"`
    : 'a secret that no longer works'
  throw new Violation('bound', `the server answered ${answer.code} to ${step.method} "${printAtom(ask)}" by ${who}`)
}

/** Permissions that are checked after every change, for everybody. */
const powers = atoms.flatMap(({ verb, name }, index) =>
  (name === '' && (verb === '*' || verb === 'create')) || verb === 'impersonate' || verb === 'escalate' ? [index] : [],
)
const mostOthers = 5

/** Asks the server about every secret the attackers know, and about some of the others in turn. */
export function checkBound(prover: Prover, changes: readonly Change[]): void {
  const { coalition, credentials } = prover
  const others = credentials.all().filter(secret => !coalition.has(secret))
  const some =
    others.length <= mostOthers
      ? others
      : Array.from({ length: mostOthers }, () => others[prover.turn++ % others.length] as string)
  const asked = new Set(powers)
  for (const { before, after } of changes) {
    const { kind, namespace, name } = (after ?? before) as NonNullable<typeof after>
    for (const index of atomsOn(kind.plural, namespace, name).indexes) asked.add(index)
  }
  for (let count = 0; count < 16; count++) asked.add(prover.turn++ % atoms.length)
  for (const secret of [...coalition, ...some]) askAll(prover, secret, asked)
}

/** Asks about everything, of every secret. */
export function checkWholeBound(prover: Prover): void {
  for (const secret of prover.credentials.all()) askAll(prover, secret, atoms.keys())
}

function askAll({ server, credentials, rights }: Prover, secret: string, asked: Iterable<number>): void {
  const decide = server.decide(secret)
  if (!decide) return
  const credential = credentials.of(secret)
  const bits = credential ? bothBits(rights.bitsOf(credential.principal), scopeBits(credential.scope)) : noBits()
  for (const index of asked) {
    if (hasBit(bits, index)) continue
    const { allowed, reason } = decide(questions[index] as (typeof questions)[number])
    if (allowed)
      throw new Violation(
        'bound',
        `the server allows "${nameOf(index)}" to ${credential ? holder(credential) : credentials.describe(secret)}: ${reason}`,
      )
  }
}

const nameOf = (index: number) => printAtom(atoms[index] as (typeof atoms)[number])
const holder = ({ what, principal }: Credential) => `${what} of "${principal.username}"`
