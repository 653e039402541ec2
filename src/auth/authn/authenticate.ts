// Authenticates access keys and tokens of external issuers: turns an Authorization header into a caller (SPEC §5, D16, D18, D67).

import type { Caller } from '../../api/caller.ts'
import { ApiError, unauthorized } from '../../api/errors.ts'
import { agentGroup, isAgentSubject } from '../../kinds/cluster-desired.ts'
import { isMistyped } from '../../kinds/key-format.ts'
import { keyId } from '../../kinds/key-rotation.ts'
import { issuerGroup, type MachineRecord } from '../../kinds/machine-key.ts'
import { restricts } from '../authz/scope.ts'
import type { MachineTokens } from '../jwt/machine-tokens.ts'
import { isJwtLike, maxTokenLength, UnknownToken } from '../jwt/token-form.ts'
import { isTokenLike } from '../tokens/token.ts'
import type { AccessKey, RemovedSecret } from './access-key-index.ts'
import { endOf, type KeyChecks, problemOf } from './key-problem.ts'
import { RejectedCredential } from './rejected-credential.ts'
import type { TeamIndex } from './team-index.ts'

export type AuthenticateOptions = KeyChecks & {
  readonly now: () => number
  readonly digest: (text: string) => string
  readonly touch: (uid: string, time: number) => void
  /** Absent: no issuer is configured. */
  readonly machineTokens?: MachineTokens | undefined
}

/**
 * `quietly`: does not record a use of the key. No header: no caller. Keys are looked up by digest, so secrets are never compared.
 * `connection`: a repeated header on the same connection is not hashed again.
 */
export type Authenticate = (
  authorization: string | undefined,
  quietly?: boolean,
  connection?: object,
) => Caller | undefined

/**
 * Verifies a token that `authenticate` does not know yet; undefined: nothing to wait for. Access keys never wait.
 * `addressOf`: called before a token is verified; returns the address of the client, or throws if that may not guess.
 */
export type Prepare = (
  authorization: string | undefined,
  connection?: object,
  addressOf?: () => string,
) => Promise<void> | undefined

type Authentication = Authenticate & { readonly isCurrent: IsCurrent; readonly prepare: Prepare }

export function authenticateWith(options: AuthenticateOptions): Authentication {
  const { keyIndex, teams, users, clusters, now, touch, machineTokens, sessions } = options
  const identities = new WeakMap<AccessKey, Identity>()
  const bearer = (header: string) => secretIn(header, machineTokens !== undefined)
  const digestOf = digests(text => options.digest(bearer(text)))
  /** Why a token of an issuer does not count, although the issuer vouches for it. */
  const tokenProblem = ({ username }: Caller): string | undefined =>
    users.isDisabled(username) ? 'the user of the token is disabled' : clusters.problemOf({ subject: username })
  const authenticate: Authenticate = (authorization, quietly = false, connection) => {
    if (authorization === undefined) return undefined
    const found = digestOf(authorization, connection)
    const key = keyIndex.find(found)
    if (!key) {
      const machine = machineTokens?.callerOf(found)
      if (machine) {
        const why = tokenProblem(machine)
        if (why !== undefined) throw new RejectedCredential(why, machine)
        return machine
      }
      throw notKnown(bearer(authorization), keyIndex.removed(found))
    }
    const time = now()
    const problem = problemOf(key, found, time, options)
    if (problem !== undefined) throw rejectedKey(problem, key)
    const identity = identityOf(key, { teams, keyIndex }, identities)
    // Watches come here every second, so an open one counts as use of the sign-in (D67).
    if (identity.login) sessions?.used(identity.login)
    // The last use is shown in seconds, so one update per second is enough. Every use counts if it extends the lifetime of the key.
    if (!quietly && (key.slides || time - identity.touched >= 1000 || time < identity.touched || key.previous)) {
      identity.touched = time
      touch(key.uid, time)
      if (key.previous) touch(`${key.uid}/${keyId(found)}`, time)
    }
    return found === key.digest ? identity.caller : withEnd(identity, key)
  }
  const prepare: Prepare = (authorization, connection, addressOf) => {
    if (authorization === undefined) return undefined
    const mayBeToken = machineTokens !== undefined && /^bearer +e/i.test(authorization)
    if (!mayBeToken && !sessions?.areOpen()) return undefined
    let found: string
    try {
      found = digestOf(authorization, connection)
    } catch {
      return undefined // malformed: authenticate() says so
    }
    const key = keyIndex.find(found)
    if (key) {
      const login = keyIndex.loginOf(key)
      return login && sessions?.prepare(login)
    }
    if (!mayBeToken || machineTokens.isKnown(found)) return undefined
    const secret = bearer(authorization)
    return isJwtLike(secret) ? machineTokens.prepare(secret, found, addressOf?.()) : undefined
  }
  const isCurrent: IsCurrent = caller => {
    if (caller.issuer !== undefined)
      return tokenProblem(caller) === undefined && (machineTokens?.isCurrent(caller) ?? false)
    const key = caller.keyUid === undefined ? undefined : keyIndex.withUid(caller.keyUid)
    if (!key) return false
    const identity = identityOf(key, { teams, keyIndex }, identities)
    const used = caller === identity.caller ? key.digest : caller === identity.before ? key.previous?.digest : undefined
    return used !== undefined && problemOf(key, used, now(), options) === undefined
  }
  return Object.assign(authenticate, { isCurrent, prepare })
}

/** Whether the key of a caller is still valid, and gives the same identity as when the caller was authenticated. */
export type IsCurrent = (caller: Caller) => boolean

/** The secret from before a rotation, during its overlap. */
function withEnd(identity: Identity, { previous }: AccessKey): Caller {
  identity.before ??= { ...identity.caller, ...(previous ? { keyUntil: previous.until } : {}) }
  return identity.before
}

/** Whether a key is valid now, for questions about its owner (D17). */
export const isLiveWith = (options: KeyChecks & Pick<AuthenticateOptions, 'now'>) => (key: AccessKey) =>
  problemOf(key, key.digest, options.now(), options) === undefined

/** A key that was never issued, or not a key at all: the only failure that may be a guess. */
export class UnknownKey extends ApiError {
  constructor(message: string) {
    super(401, 'Unauthorized', message)
  }
}

/** Whether a credential may be a guess: limited for each address. */
export const isGuess = (error: unknown): boolean => error instanceof UnknownKey || error instanceof UnknownToken

const rejectedKey = (message: string, key: RemovedSecret['key']) =>
  new RejectedCredential(message, { key: key.name, username: usernameOf(key) })

export const missingKey = () => unauthorized('no access key was sent: send Authorization: Bearer <ACCESS_KEY>')

/** Not an unknown key: the client sent a valid kind of credential to the wrong endpoint, so this is not a guess. */
export class MisplacedToken extends ApiError {
  constructor() {
    super(
      401,
      'Unauthorized',
      'this is a direct-cluster token, which is for a gateway: send it to /kubernetes/cluster/<cluster>/… there; the management API requires an access key',
    )
  }
}

function notKnown(secret: string, removed: RemovedSecret | undefined) {
  if (removed) return rejectedKey(`access key was ${removed.reason}`, removed.key)
  if (isTokenLike(secret)) return new MisplacedToken()
  if (isMistyped(secret))
    return new UnknownKey('malformed access key: its checksum is wrong, so it was mistyped or cut')
  return new UnknownKey('unknown access key')
}

/** The last header of each connection with its digest, as long as the connection is open. */
function digests(digest: (header: string) => string): (header: string, connection?: object) => string {
  const known = new WeakMap<object, Map<string, string>>()
  return (header, connection) => {
    const last = connection && known.get(connection)
    // A map compares hashes. With several clients behind one proxy, the timing reveals nothing about another client's key.
    const there = last?.get(header)
    if (there !== undefined) return there
    const made = digest(header)
    if (connection) known.set(connection, new Map([[header, made]]))
    return made
  }
}

/** `allowsTokens`: tokens of external issuers are longer than keys. */
function secretIn(header: string, allowsTokens: boolean): string {
  const secret = header.slice(7).trim()
  const isBearer = header.startsWith('Bearer ') || header.slice(0, 7).toLowerCase() === 'bearer '
  const longest = allowsTokens && isBearer && isJwtLike(secret) ? maxTokenLength + 7 : 4096
  // They are longer than keys, where there is much in their scope.
  if (header.length > longest && isBearer && isTokenLike(secret)) throw new MisplacedToken()
  if (header.length > longest || !isBearer || secret === '' || secret.includes(' '))
    throw unauthorized('malformed Authorization header: send Authorization: Bearer <ACCESS_KEY>')
  return secret
}

/** When a valid key expires, if known: its own expiry, or the end of the overlap after a rotation. */
export const keyEndsWith =
  ({ keyIndex, digest, lastActivity }: Pick<AuthenticateOptions, 'keyIndex' | 'digest' | 'lastActivity'>) =>
  (secret: string): number | undefined => {
    const found = digest(secret)
    const key = keyIndex.find(found)
    if (!key) return undefined
    const overlap = found === key.digest ? Number.POSITIVE_INFINITY : (key.previous?.until ?? 0)
    const end = Math.min(endOf(key, lastActivity), overlap)
    return end === Number.POSITIVE_INFINITY ? undefined : end
  }

type Identity = {
  readonly caller: Caller
  before?: Caller
  readonly teams: number
  /** The key with the sign-in that the groups come from. */
  readonly login: AccessKey | undefined
  touched: number
}
type Indexes = Pick<AuthenticateOptions, 'teams' | 'keyIndex'>

/** Username and groups that come with a key (D16). Kept until the key, its sign-in, or a team that its user is or was in changes. */
function identityOf(key: AccessKey, { teams, keyIndex }: Indexes, known: WeakMap<AccessKey, Identity>): Identity {
  const kept = known.get(key)
  const version = key.user ? teams.versionOf(key.user) : 0
  const login = key.session || key.login !== undefined ? keyIndex.loginOf(key) : undefined
  if (kept?.teams === version && kept.login === login) return kept
  const caller: Caller = {
    ...named(key, keyIndex.groupsOf(key), teams),
    key: key.name,
    keyUid: key.uid,
    extra: { 'authentication.platform.sh/key': [key.name] },
    ...(key.machine ? machineOf(key, key.machine) : {}),
    ...(restricts(key.scope) ? { scope: key.scope } : {}),
  }
  const touched = kept?.touched ?? Number.NEGATIVE_INFINITY
  const identity: Identity = { caller, teams: version, login, touched }
  known.set(key, identity)
  return identity
}

/** As with the token that the key was exchanged for. */
const machineOf = ({ name: key }: AccessKey, { name, url, uid, extra }: MachineRecord) => ({
  machine: name,
  ...(uid === undefined ? {} : { uid }),
  extra: { ...extra, 'authentication.platform.sh/issuer': [url], 'authentication.platform.sh/key': [key] },
})

const teamGroup = (team: string) => `platform:team:${team}`

const usernameOf = ({ user, team, subject }: RemovedSecret['key']): string =>
  team ? teamGroup(team) : user || (subject ?? '')

function named(
  key: AccessKey,
  own: readonly string[],
  teams: TeamIndex,
): Pick<Caller, 'username' | 'groups' | 'identity'> {
  const groups = ['system:authenticated', ...own]
  const username = usernameOf(key)
  if (key.team) return { identity: 'Team', username, groups: [...groups, teamGroup(key.team)] }
  if (isAgentSubject(username)) groups.push(agentGroup)
  if (!key.user) return { identity: 'Subject', username, groups }
  groups.push(`platform:user:${key.user}`)
  if (key.machine) groups.push(issuerGroup(key.machine.name))
  return {
    identity: 'User',
    username,
    groups: [...groups, ...teams.of(key.user, groups).map(teamGroup)],
  }
}
