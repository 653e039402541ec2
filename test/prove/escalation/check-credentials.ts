// Credentials: none is created while impersonating or by machines, none outlives its creator's, and no token outlives its secret (D22, D62, D67).

import type { Token } from './credentials.ts'
import type { Known } from './model.ts'
import { kinds, loginPin, type Obj, tokens } from './objects.ts'
import type { Prover } from './prover.ts'
import { isReadableScope, readScope, scopeBits } from './scopes.ts'
import type { Outcome } from './step.ts'
import { Violation } from './violation.ts'

export function checkCredentials(prover: Prover, outcome: Outcome): void {
  const { step, changes, shown } = outcome
  const made = changes.filter(({ cause, after }) => cause !== 'server' && after?.kind === kinds.OwnedAccessKey)
  const isNewSecret = step.sub === 'rotate' || step.method === 'create' || made.some(one => one.type === 'created')
  if (step.kind === tokens) checkMint(prover, outcome)
  if (step.kind === kinds.OwnedAccessKey) {
    if (step.as && isNewSecret && (!step.dryRun || shown))
      throw new Violation(
        'impersonation',
        `a secret of key "${step.name}" was created while acting as "${step.as.user}"`,
      )
    if (step.dryRun && shown) throw new Violation('answers', 'a dry run showed the secret of an access key')
    checkSignIns(prover, outcome)
    for (const { before, after } of made) if (after) checkLife(prover, outcome, before, after)
  }
}

/** The server alone writes sessions, exchanged keys and the sign-in of a key. Machines write no keys, and delete only their own. */
function checkSignIns({ signIns }: Prover, { step, before: { credential, administers }, changes }: Outcome): void {
  for (const { before, after, cause } of changes) {
    const key = after ?? before
    if (cause === 'server' || key?.kind !== kinds.OwnedAccessKey) continue
    const isOwnEnd = step.method.startsWith('delete') && key.uid === credential?.key?.uid
    if (credential?.isMachine && !isOwnEnd)
      throw new Violation('machines', `${step.what} of key "${key.name}" by ${credential.what} was accepted`)
    if (!after) continue
    const isReadOnly = before && (signIns.isSession(before) || signIns.exchanged.has(before.uid))
    if (after.object.spec?.type === 'Login' && !isReadOnly)
      throw new Violation('sign-ins', `${step.what} made key "${key.name}" a session`)
    const [was, is] = [before?.object, after.object]
    if (isReadOnly && (powerOf(was) !== powerOf(is) || (was?.spec?.disabled && !is.spec?.disabled)))
      throw new Violation('sign-ins', `${step.what} changed key "${key.name}", which belongs to a sign-in`)
    const isParent =
      !before && credential?.login !== undefined && is.metadata.annotations?.[loginPin] === credential.login
    const field = serverFields.find(one => fieldOf(was, one) !== fieldOf(is, one))
    if (field !== undefined && !administers && !(field === 'parent' && isParent))
      throw new Violation('sign-ins', `${step.what} set ${field} of key "${key.name}"`)
  }
}

const serverFields = ['parent', 'identity', 'identityRefresh', 'oidcLogin', 'oidcProvider']

/** Every write encrypts the tokens of the provider again. */
function fieldOf(object: Obj | undefined, field: string): string {
  const value = object?.spec?.[field]
  return JSON.stringify(value, (name, part) => (name === 'connectorData' ? undefined : part)) ?? ''
}

/** All of a key but its disabled flag. */
function powerOf(object: Obj | undefined): string {
  const { spec = {}, status, metadata } = object ?? {}
  const fields = Object.keys(spec).filter(one => one !== 'disabled')
  return JSON.stringify([fields.map(one => [one, fieldOf(object, one)]), status?.['digest'], metadata?.annotations])
}

/** A key that was created, rotated or strengthened. Only a new secret revives an expired one. */
function checkLife(
  { credentials, server }: Prover,
  { step, before: known }: Outcome,
  before: Known | undefined,
  after: Known,
): void {
  const end = credentials.keyEnd(after)
  const isRotated = after.object.status?.['rotatedAt'] !== before?.object.status?.['rotatedAt']
  const endBefore = before === undefined ? undefined : credentials.keyEnd(before)
  if (endBefore !== undefined && !isRotated && endBefore <= server.now() && end > server.now())
    throw new Violation('lifetime', `key "${after.name}" had expired and works again after ${step.what}`)
  if (known.administers) return
  const isLater = endBefore !== undefined && end > endBefore
  if (before !== undefined && !isRotated && !isLater && !isStronger(after, before)) return
  const most = known.credential?.newKeysEnd ?? 0
  if (end <= most) return
  const words = (time: number) => (time === Number.POSITIVE_INFINITY ? 'never' : `in ${(time - server.now()) / 1000} s`)
  throw new Violation(
    'lifetime',
    `key "${after.name}" ends ${words(end)} after ${step.what}, made with a credential that ends ${words(most)}`,
  )
}

/** Whether the same secret allows more than before. */
function isStronger({ object: { spec: now = {} } }: Known, { object: { spec: before = {} } }: Known): boolean {
  if (before.disabled && !now.disabled) return true
  if (now.groups?.some(group => !before.groups?.includes(group))) return true
  const [wide, narrow] = [scopeBits(readScope(now.scope)), scopeBits(readScope(before.scope))]
  return wide.some((bits, index) => (bits & ~(narrow[index] ?? 0)) !== 0)
}

function checkMint({ credentials }: Prover, { step, before, answer }: Outcome): void {
  const token = credentials.tokens.at(-1)
  if (step.dryRun) {
    if (answer.text.includes('"token"')) throw new Violation('answers', 'a dry run showed a token')
    return
  }
  if (step.as) throw new Violation('impersonation', `a token was minted while acting as "${step.as.user}"`)
  const scope = (step.body as { spec?: { scope?: unknown } } | undefined)?.spec?.scope
  if (!isReadableScope(scope)) throw new Violation('bound', 'a token was minted with a scope that nobody can read')
  const end = before.credential?.end ?? 0
  if (token && token.expires > end)
    throw new Violation(
      'tokens',
      `a token lives ${(token.expires - end) / 1000} s longer than the secret it was minted with`,
    )
}

/** Its secret works, and is still that of the same key. */
const isAlive = ({ endOf, secrets }: Prover['credentials'], { secret, keyUid }: Token): boolean =>
  endOf(secret) !== undefined && (secrets.get(secret)?.keyUid ?? keyUid) === keyUid

/** A token whose secret no longer works has expired, or the server has revoked it. */
export function checkTokens({ credentials, model, server }: Prover): void {
  const { tokens: all } = credentials
  for (let index = all.length - 1; index >= 0; index--) {
    const token = all[index] as Token
    if (token.expires <= server.now()) all.splice(index, 1)
    else if (!isAlive(credentials, token) && !model.of(kinds.TokenRevocation).some(one => revokes(one, token)))
      throw new Violation(
        'tokens',
        `a token of "${token.username}" works for another ${(token.expires - server.now()) / 1000} s, though its secret no longer does`,
      )
  }
}

type Revocation = {
  readonly keyUID?: string
  readonly jti?: string
  readonly users?: readonly string[]
  readonly groups?: readonly string[]
  /** Applies only to tokens with this group. */
  readonly carrying?: string
  readonly notBefore?: string
}

function revokes({ byServer, object }: Known, token: Token): boolean {
  const { keyUID, jti, users = [], groups = [], carrying, notBefore = '' } = (object.spec ?? {}) as Revocation
  if (!byServer || Date.parse(notBefore) < token.issued) return false
  if (carrying !== undefined && !token.groups.includes(carrying)) return false
  return (
    keyUID === token.keyUid ||
    jti === token.id ||
    users.includes(token.username) ||
    groups.some(group => token.groups.includes(group))
  )
}
