// Tokens of external issuers, verified once and cached: gives the caller of a token without waiting (D67).

import type { Caller, Scope } from '../../api/caller.ts'
import type { ApiError } from '../../api/errors.ts'
import type { JsonObject } from '../../api/object.ts'
import { agentGroup } from '../../kinds/cluster-desired.ts'
import { issuerGroup, type MachineRecord } from '../../kinds/machine-key.ts'
import { RejectedCredential } from '../authn/rejected-credential.ts'
import type { TeamIndex } from '../authn/team-index.ts'
import { restricts } from '../authz/scope.ts'
import { isTokenLike } from '../tokens/token.ts'
import { agentIn } from './agent-identity.ts'
import type { IssuerConfig } from './auth-config.ts'
import { type MappedUser, MappingError } from './claim-mapping.ts'
import { explainToken, type TokenExplanation } from './explain-token.ts'
import type { IssuerKeys, PublishedKey } from './issuer-keys.ts'
import { openPendingVerifications } from './pending-verifications.ts'
import { rejectionOf } from './rejected-token.ts'
import { jtiIn, tokenKeyId } from './token-id.ts'
import { audiencesIn, type Issuer, JwtError, leeway, verifyJwt } from './verify.ts'

export interface MachineTokens {
  /** Whether the token needs no verification. */
  isKnown(digest: string): boolean
  /** Verifies a token that is not known. Rejects only if too many wait. `address`: of the client; '' is not limited. */
  prepare(token: string, digest: string, address?: string): Promise<void>
  /** The caller of a prepared token; undefined: unknown. Throws 401 with the reason if it is invalid. */
  callerOf(digest: string): Caller | undefined
  isCurrent(caller: Caller): boolean
  /** The token of a caller, for an exchange; undefined: the caller has none, or it is no longer accepted. */
  tokenOf(caller: Caller): AcceptedToken | undefined
  /** Whether the entry that accepted the token of an exchanged key would still accept it. */
  isAccepted(record: MachineRecord): boolean
  /** Runs every check of a token without accepting it. */
  explain(token: string): Promise<TokenExplanation>
  issuers(): readonly Issuer[]
  /** Replaces the configuration. Cached tokens are mapped again. */
  use(issuers: readonly IssuerConfig[]): void
  stop(): void
}

export type MachineTokensOptions = {
  readonly teams: Pick<TeamIndex, 'of' | 'versionOf'>
  readonly openKeys: (config: IssuerConfig, withdrawn: () => void) => IssuerKeys
  readonly now: () => number
  /** Called when cached tokens may have changed or ended. */
  readonly changed: () => void
  /** Called for every verified or rejected token. `issuer`: '' if unknown. */
  readonly verified: (issuer: string, isValid: boolean) => void
  readonly droppedGroups: (issuer: string, count: number) => void
}

/** A verified token, as an access key keeps it. */
export type AcceptedToken = {
  readonly record: MachineRecord
  readonly digest: string
  readonly jti: string | undefined
  /** Milliseconds. */
  readonly expires: number
  readonly username: string
  readonly groups: readonly string[]
  readonly scope: IssuerConfig['scope']
}

type Entry = {
  readonly digest: string
  readonly url: string
  readonly key: PublishedKey
  readonly claims: JsonObject
  /** Milliseconds, with the leeway. */
  readonly until: number
  readonly expires: number
  generation: number
  user: MappedUser & { readonly issuer: Issuer }
  caller: Caller | undefined
  teams: number
}

const maxCached = 4096
const maxRefused = 1024
/** Long enough for the request that waited. A new key or configuration may make the token valid. */
const refusedFor = 1000

export function openMachineTokens(options: MachineTokensOptions): MachineTokens {
  const { teams, openKeys, now, changed, verified, droppedGroups } = options
  let issuers = new Map<string, Issuer>()
  let generation = 0
  const cached = new Map<string, Entry>()
  const refused = new Map<string, { readonly until: number; readonly error: () => ApiError }>()
  const pending = openPendingVerifications()
  const byCaller = new WeakMap<Caller, Entry>()
  const step = () => {
    generation++
    refused.clear()
    changed()
  }

  const map = (issuer: Issuer, claims: JsonObject): Entry['user'] => {
    const { droppedGroups: dropped, ...user } = issuer.config.mapping.map(claims)
    if (dropped > 0) droppedGroups(issuer.config.name, dropped)
    return { ...user, issuer }
  }

  async function verify(token: string, digest: string): Promise<void> {
    let source: Issuer | undefined
    try {
      const before = generation
      const found = await verifyJwt(token, {
        issuerOf: url => issuers.get(url),
        now,
        named: named => {
          source = named
        },
      })
      if (before !== generation) return await verify(token, digest)
      const { issuer, key, claims, expires } = found
      const user = map(issuer, claims)
      keep(cached, maxCached, digest, {
        digest,
        url: issuer.config.url,
        key,
        claims,
        expires: expires * 1000,
        until: (expires + leeway) * 1000,
        generation,
        user,
        caller: undefined,
        teams: 0,
      })
      verified(issuer.config.name, true)
    } catch (error) {
      if (!(error instanceof JwtError || error instanceof MappingError)) throw error
      verified(source?.config.name ?? '', false)
      // A token of this server for a gateway gets a better message.
      if (!source && isTokenLike(token)) return
      const rejection = rejectionOf(error, source)
      keep(refused, maxRefused, digest, { until: now() + refusedFor, error: rejection })
    }
  }

  /** Maps the claims again after a change of the configuration or of keys. False: the token is no longer accepted. */
  const isAccepted = (entry: Entry): boolean => {
    if (entry.generation === generation) return true
    const issuer = issuers.get(entry.url)
    if (!issuer?.keys.isPublished(entry.key) || !hasAudience(entry, issuer)) return false
    try {
      const user = map(issuer, entry.claims)
      if (JSON.stringify(identityIn(user)) !== JSON.stringify(identityIn(entry.user))) entry.caller = undefined
      entry.user = user
      entry.generation = generation
      return true
    } catch (error) {
      if (error instanceof MappingError) return false
      throw error
    }
  }

  const callerIn = (entry: Entry): Caller => {
    const version = teams.versionOf(entry.user.username)
    if (entry.caller && entry.teams === version) return entry.caller
    const caller = toCaller(entry, teams)
    entry.caller = caller
    entry.teams = version
    byCaller.set(caller, entry)
    return caller
  }

  const find = (digest: string): Entry | undefined => {
    const entry = cached.get(digest)
    if (!entry) return undefined
    if (isAccepted(entry)) return entry
    cached.delete(digest)
    return undefined
  }

  return {
    isKnown: digest => find(digest) !== undefined || now() < (refused.get(digest)?.until ?? 0),
    prepare: (token, digest, address = '') => pending.run({ token, digest, address }, () => verify(token, digest)),
    callerOf(digest) {
      const entry = find(digest)
      if (!entry) {
        const rejection = refused.get(digest)
        if (rejection) throw rejection.error()
        return undefined
      }
      if (now() >= entry.until) throw new RejectedCredential('the token has expired', callerIn(entry))
      // The most recently used tokens stay, among them those of open watches.
      if (cached.size > maxCached / 2) keep(cached, maxCached, digest, entry)
      return callerIn(entry)
    },
    isCurrent(caller) {
      const entry = byCaller.get(caller)
      return (
        entry !== undefined &&
        cached.get(entry.digest) === entry &&
        find(entry.digest) === entry &&
        now() < entry.until &&
        callerIn(entry) === caller
      )
    },
    tokenOf(caller) {
      const entry = byCaller.get(caller)
      if (!entry || find(entry.digest) !== entry) return undefined
      const { digest, user, claims, expires } = entry
      const { username, groups, uid, extra, issuer } = user
      const { name, url, stamp, scope } = issuer.config
      const audiences = audiencesIn(claims).filter(one => issuer.config.audiences.includes(one))
      const more = { ...(uid === undefined ? {} : { uid }), ...(Object.keys(extra).length ? { extra } : {}) }
      const jti = jtiIn(claims)
      return { record: { name, url, audiences, stamp, ...more }, digest, jti, expires, username, groups, scope }
    },
    isAccepted({ name, url, audiences, stamp }) {
      const config = issuers.get(url)?.config
      if (config?.name !== name || config.stamp !== stamp) return false
      return audiences.some(one => config.audiences.includes(one))
    },
    explain: token =>
      explainToken(token, {
        issuers,
        now,
        callerOf: (issuer, user, claims) => toCaller({ user: { ...user, issuer }, claims, expires: 0 }, teams),
      }),
    issuers: () => [...issuers.values()],
    use(configs) {
      const before = [...issuers.values()]
      issuers = new Map(
        configs.map(config => {
          const same = before.find(one => isSameSource(one.config, config))
          const withdrawn = () => {
            if (issuers.get(config.url)?.keys === keys) step()
          }
          const keys: IssuerKeys = same?.keys ?? openKeys(config, withdrawn)
          return [config.url, { config, keys }]
        }),
      )
      const kept = new Set([...issuers.values()].map(({ keys }) => keys))
      for (const { keys } of before) if (!kept.has(keys)) keys.stop()
      step()
    },
    stop() {
      for (const { keys } of issuers.values()) keys.stop()
    },
  }
}

const isSameSource = (one: IssuerConfig, other: IssuerConfig) =>
  one.url === other.url && one.discoveryURL === other.discoveryURL && one.ca === other.ca && one.name === other.name

const hasAudience = ({ claims }: Entry, { config }: Issuer) =>
  audiencesIn(claims).some(one => config.audiences.includes(one))

/** The parts of the caller, for comparison. */
const identityIn = ({ issuer: { config }, ...user }: Entry['user']) => [user, config.name, config.scope, config.agent]

/** A User, as a key for the same name would be (D16): teams list it by name or group, and it owns what it creates. */
function toCaller(
  { user, claims, expires }: Pick<Entry, 'user' | 'claims' | 'expires'>,
  teams: MachineTokensOptions['teams'],
): Caller {
  const { username, uid, issuer, extra } = user
  const { name, url, scope, agent } = issuer.config
  const token = { issuer: name, keyUid: tokenKeyId(url, claims), keyUntil: expires }
  const from = { 'authentication.platform.sh/issuer': [url] }
  const subject = agentIn(agent, claims)
  // As with the access key of an agent.
  if (subject !== undefined)
    return {
      identity: 'Subject',
      username: subject,
      groups: ['system:authenticated', agentGroup],
      extra: from,
      ...token,
      scope: { roles: [{ role: 'agent' }] },
    }
  const groups = ['system:authenticated', `platform:user:${username}`, issuerGroup(name), ...user.groups]
  return {
    identity: 'User',
    username,
    groups: [...groups, ...teams.of(username, groups).map(team => `platform:team:${team}`)],
    ...(uid === undefined ? {} : { uid }),
    extra: { ...extra, ...from },
    ...token,
    ...(restricts(scope as Scope | undefined) ? { scope: scope as Scope } : {}),
  }
}

function keep<T>(map: Map<string, T>, most: number, digest: string, value: T): void {
  map.delete(digest)
  map.set(digest, value)
  if (map.size > most) for (const oldest of map.keys()) if (map.delete(oldest)) break
}
