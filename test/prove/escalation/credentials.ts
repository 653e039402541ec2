// Access keys, sessions and tokens in the model: their identity and their expiry (D16, D18, D22, D31, D67).

import type { Known, Model } from './model.ts'
import { kinds, type Obj, ours, teamGroup } from './objects.ts'
import { agentOf } from './permissions.ts'
import { isReadableKeySpec, isReadablePatch, type ReadScope, readScope } from './scopes.ts'
import { idle, leeway, type Machine, type SignIns } from './sign-ins.ts'
import { agentTokens, machineScope } from './universe.ts'

/** The acting identity: a name, groups, and the teams among the groups. */
export type Principal = {
  readonly username: string
  readonly groups: ReadonlySet<string>
  readonly teams: ReadonlySet<string>
}
export type Credential = {
  /** undefined: a token of a machine. */
  readonly key: Known | undefined
  /** For reports. */
  readonly what: string
  readonly principal: Principal
  readonly scope: ReadScope
  /** Milliseconds; Infinity: never. */
  readonly end: number
  /** The latest end of keys that are created with it. */
  readonly newKeysEnd: number
  /** The uid of the session behind it. */
  readonly login: string | undefined
  /** A token of an issuer, or a key that was exchanged for one. */
  readonly isMachine: boolean
}
export type Token = {
  readonly secret: string
  readonly keyUid: string
  readonly username: string
  readonly groups: readonly string[]
  readonly issued: number
  readonly expires: number
  readonly id: string
}
/** The body of an accepted write of a key. */
export type SentKey = { readonly how: 'whole' | 'merge' | 'json'; readonly body: unknown }

export type Credentials = {
  /** Every secret that a response contained, oldest first. */
  readonly secrets: ReadonlyMap<string, { readonly keyUid: string }>
  readonly tokens: Token[]
  /** Every secret, and every token of a machine. */
  all(): string[]
  /** The current identity of a secret; undefined: it does not authenticate. */
  of(secret: string): Credential | undefined
  /** A secret that does not authenticate, for reports. */
  describe(secret: string): string
  /** When a secret expires; undefined: it is invalid. */
  endOf(secret: string): number | undefined
  /** The end of a key's current secret. */
  keyEnd(key: Known): number
  /** A key got its first or another secret. `overlap`: milliseconds for which the previous one stays valid. */
  learn(secret: string, key: Known, overlap: number): void
  /** A client wrote a key. The model uses its scope as sent. */
  sent(key: Known, sent: SentKey): void
  used(secret: string): void
  /** With these groups only, as while impersonating. */
  principalOf(username: string, groups: readonly string[]): Principal
  /** A user with these groups, and the teams that follow from both. */
  personOf(username: string, groups: readonly string[]): Principal
}

const usernameOf = ({ issuer, subject }: Machine) => `${issuer}:${subject}`
const groupsIn = ({ issuer, groups }: Machine) => groups.map(group => `${issuer}:${group}`)
const issuerGroup = (issuer: string) => `platform:issuer:${issuer}`
/** As in auth.yaml. */
const scopeOfIssuer = (issuer: Machine['issuer']): ReadScope => (issuer === 'ci' ? readScope(machineScope) : undefined)

const agentPrefix = 'platform:cluster:'
const agentScope = readScope({ roles: [{ role: 'agent' }] })

type Life = { readonly keyUid: string; until: number }

export function openCredentials(model: Model, signIns: SignIns, now: () => number): Credentials {
  const secrets = new Map<string, Life>()
  const current = new Map<string, string>()
  const previous = new Map<string, string>()
  const scopes = new Map<string, ReadScope>()
  const lastUse = new Map<string, number>()

  const scopeOf = (key: Known): ReadScope =>
    scopes.has(key.uid) ? scopes.get(key.uid) : readScope(key.object.spec?.scope)

  /** The role agent of a scope covers the agent's own cluster (D68). */
  function ownScope(scope: ReadScope, subject: string): ReadScope {
    if (!subject.startsWith(agentPrefix) || typeof scope !== 'object') return scope
    if (!scope.roles?.some(({ role }) => role === 'agent')) return scope
    const resourceNames = [subject.slice(agentPrefix.length).split(':')[0] ?? '']
    const resources = [{ group: ours, resources: ['clusters/desired', 'clusters/status'], resourceNames }]
    const own = { verbs: [], resources, namespaces: [], requestTargets: [] }
    return { ...scope, rules: [...(scope.rules ?? []), own] }
  }

  function keyEnd(key: Known): number {
    const { metadata, spec = {}, status = {} } = key.object
    const { uid } = key
    if (!spec.ttl) return Number.POSITIVE_INFINITY
    const since = Date.parse(String(status['rotatedAt'] ?? metadata.creationTimestamp))
    const from = spec.ttlAfterLastActivity ? Math.max(since, lastUse.get(uid) ?? 0) : since
    const end = from + spec.ttl * 1000
    return signIns.isSession(key) ? Math.min(end, Math.max(since, lastUse.get(uid) ?? 0) + idle) : end
  }

  const hasCluster = (agent: string) => model.of(kinds.Cluster).some(one => agentOf(one) === agent)

  const isAlive = (key: Known): boolean => {
    const { metadata, spec = {} } = key.object
    if (metadata.deletionTimestamp || spec.disabled || signIns.isBlocked(key)) return false
    if (spec.subject?.startsWith(agentPrefix)) return hasCluster(spec.subject)
    if (!spec.team) return true
    const team = model.get(kinds.Team, '', spec.team)
    return team !== undefined && !team.object.metadata.deletionTimestamp && model.means(key, spec.team)
  }

  /** The agent that a service account is according to auth.yaml. No claim chooses the cluster (D65, D68). */
  const agentIn = ({ issuer, subject }: Machine): string | undefined =>
    issuer === 'kube' && subject === agentTokens
      ? `${agentPrefix}${signIns.agent.cluster}:${signIns.agent.uid}`
      : undefined

  /** The server accepts the token for a few seconds after its end. */
  const machineEnd = (machine: Machine): number | undefined => {
    const agent = agentIn(machine)
    const isKnown = agent === undefined ? !signIns.isDisabled(usernameOf(machine)) : hasCluster(agent)
    return machine.expires + leeway > now() && isKnown ? machine.expires : undefined
  }

  function endOf(secret: string): number | undefined {
    const machine = signIns.machines.get(secret)
    if (machine) return machineEnd(machine)
    const life = secrets.get(secret)
    const key = life && model.uids.get(life.keyUid)
    if (!life || !key || !isAlive(key)) return undefined
    const end = Math.min(keyEnd(key), life.until)
    return end > now() ? end : undefined
  }

  const withTeams = (username: string, groups: ReadonlySet<string>): Principal => ({
    username,
    groups,
    teams: new Set([...groups].flatMap(one => (one.startsWith(teamGroup) ? [one.slice(teamGroup.length)] : []))),
  })

  function principalOf(key: Known): Principal {
    const { spec = {} } = key.object
    const groups = new Set(['system:authenticated', ...(spec.groups ?? []), ...signIns.groupsOf(key)])
    const issuer = signIns.exchanged.get(key.uid)
    if (spec.team) return withTeams(`${teamGroup}${spec.team}`, groups.add(`${teamGroup}${spec.team}`))
    if (spec.subject?.startsWith(agentPrefix)) groups.add('platform:agents')
    if (!spec.user) return withTeams(spec.subject ?? '', groups)
    return userWith(spec.user, issuer === undefined ? groups : groups.add(issuerGroup(issuer)))
  }

  function userWith(user: string, groups: Set<string>): Principal {
    groups.add(`platform:user:${user}`)
    const own = [...groups]
    for (const { name, object } of model.of(kinds.Team)) {
      if (object.metadata.deletionTimestamp) continue
      if (object.spec?.users?.includes(user) || object.spec?.groups?.some(group => own.includes(group)))
        groups.add(`${teamGroup}${name}`)
    }
    return withTeams(user, groups)
  }

  function tokenOf(machine: Machine, end: number): Credential {
    const agent = agentIn(machine)
    const groups = ['system:authenticated', issuerGroup(machine.issuer), ...groupsIn(machine)]
    return {
      key: undefined,
      what: `a token of issuer "${machine.issuer}"`,
      principal:
        agent === undefined
          ? userWith(usernameOf(machine), new Set(groups))
          : withTeams(agent, new Set(['system:authenticated', 'platform:agents'])),
      scope: agent === undefined ? scopeOfIssuer(machine.issuer) : ownScope(agentScope, agent),
      end,
      newKeysEnd: Number.NEGATIVE_INFINITY,
      login: undefined,
      isMachine: true,
    }
  }

  return {
    secrets,
    tokens: [],
    all: () => [...secrets.keys(), ...signIns.machines.keys()],
    endOf,
    keyEnd,
    of(secret) {
      const end = endOf(secret)
      const machine = signIns.machines.get(secret)
      if (machine && end !== undefined) return tokenOf(machine, end)
      const key = model.uids.get(secrets.get(secret)?.keyUid ?? '')
      if (end === undefined || !key) return undefined
      const login = signIns.loginOf(key)
      const issuer = signIns.exchanged.get(key.uid)
      return {
        key,
        what: `key "${key.name}"`,
        principal: principalOf(key),
        scope: issuer ? scopeOfIssuer(issuer) : ownScope(scopeOf(key), key.object.spec?.subject ?? ''),
        end: login === undefined ? end : Math.min(end, signIns.endOf(login)),
        newKeysEnd: signIns.isSession(key) ? Number.POSITIVE_INFINITY : end,
        login,
        isMachine: issuer !== undefined,
      }
    },
    describe(secret) {
      const key = model.uids.get(secrets.get(secret)?.keyUid ?? '')
      const of = key ? `secret of key "${key.name}" of "${key.object.spec?.user}"` : 'secret'
      return `a ${of} that the model says no longer works`
    },
    learn(secret, key, overlap) {
      const before = current.get(key.uid)
      // A client chose the secret that the key has.
      if (before === secret) return
      // A chosen secret may belong to another key by now.
      const lifeOf = (one = '') => (secrets.get(one)?.keyUid === key.uid ? secrets.get(one) : undefined)
      const [older, last] = [lifeOf(previous.get(key.uid)), lifeOf(before)]
      if (older) older.until = Math.min(older.until, now())
      if (last && before !== undefined) {
        last.until = now() + overlap
        previous.set(key.uid, before)
      }
      secrets.set(secret, { keyUid: key.uid, until: Number.POSITIVE_INFINITY })
      current.set(key.uid, secret)
    },
    sent(key, { how, body }) {
      const spec = (body as Obj | undefined)?.spec
      if (how === 'whole') scopes.set(key.uid, isReadableKeySpec(spec) ? readScope(spec?.scope) : 'unreadable')
      else if (how === 'merge' ? !isReadableKeySpec(spec) : !isReadablePatch(body)) scopes.set(key.uid, 'unreadable')
      else scopes.delete(key.uid)
    },
    used: secret => void lastUse.set(secrets.get(secret)?.keyUid ?? '', now()),
    principalOf: (username, groups) => withTeams(username, new Set(groups)),
    personOf: (username, groups) => userWith(username, new Set(['system:authenticated', ...groups])),
  }
}
