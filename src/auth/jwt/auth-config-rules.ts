// The rules of an auth.yaml beyond its schema: unique names and issuers, prefixes, URLs, scopes.

import { type Finding, nameOf, withoutGaps } from '../../api/config-shape.ts'
import { parseDuration, shortDuration } from '../../api/duration.ts'
import { dnsLabel, isReservedName, qualifiedName } from '../../api/names.ts'
import type { At } from '../../api/yaml-source.ts'
import { checkScope } from '../../kinds/scope-validation.ts'
import { checkLogin } from '../oidc/login-rules.ts'
import { checkAgent } from './agent-identity.ts'
import type { AuthConfig, JwtEntry, LoginEntry } from './auth-config-schema.ts'
import { checkIssuer } from './issuer-rules.ts'

/** An entry without its parts of the wrong type, which were reported already. */
type PartialList<T> = readonly (T | undefined)[] | undefined
export type PartialConfig = Omit<AuthConfig, 'jwt' | 'login'> & {
  readonly jwt?: PartialList<JwtEntry>
  readonly login?: PartialList<LoginEntry>
}

const maxIssuers = 64
const reservedEntryNames = ['system', 'platform']

type Named = Pick<LoginEntry, 'name'> & {
  readonly claimMappings?: Pick<NonNullable<LoginEntry['claimMappings']>, 'username' | 'groups'> | undefined
}
export const usernamePrefixOf = (entry: Named) => entry.claimMappings?.username?.prefix ?? `${entry.name}:`
export const groupPrefixOf = (entry: Named) => entry.claimMappings?.groups?.prefix ?? `${entry.name}:`

/** An entry of either list. */
type Placed = { readonly at: readonly ['login' | 'jwt', number]; readonly entry: JwtEntry | LoginEntry }

export function checkAuthRules(config: PartialConfig): Finding[] {
  const login = entriesOf(config.login)
  const jwt = entriesOf(config.jwt)
  const placed = [
    ...login.map(([index, entry]): Placed => ({ at: ['login', index], entry })),
    ...jwt.map(([index, entry]): Placed => ({ at: ['jwt', index], entry })),
  ]
  const found = [
    ...placed.flatMap(({ at, entry }) => checkCommon(entry, at)),
    ...login.flatMap(([index, entry]) => checkLogin(entry, ['login', index])),
    ...jwt.flatMap(([index, entry]) => checkJwt(entry, ['jwt', index])),
    ...checkUnique(placed),
    ...checkPrefixes(placed),
    ...checkAudiences(login, jwt),
  ]
  const [logins, issuers] = [config.login?.length ?? 0, config.jwt?.length ?? 0]
  if (logins + issuers > maxIssuers) {
    const what = logins === 0 ? 'jwt has' : issuers === 0 ? 'login has' : 'login and jwt have'
    const message = `${what} more than ${maxIssuers} entries${what.endsWith('have') ? ' together' : ''}; remove some`
    found.push({ at: issuers === 0 ? ['login', maxIssuers] : ['jwt', Math.max(0, maxIssuers - logins)], message })
  }
  return found
}

/** With their indexes. A value of the wrong type leaves a gap, which the rules do not expect. */
const entriesOf = <T>(list: PartialList<T>): (readonly [number, T])[] =>
  (list ?? []).flatMap((entry, index) => (entry === undefined ? [] : [[index, withoutGaps(entry) as T] as const]))

function checkCommon({ name, issuer }: JwtEntry | LoginEntry, at: At): Finding[] {
  const found: Finding[] = []
  const add = (message: string) => found.push({ at: [...at, 'name'], message: `${nameOf([...at, 'name'])} ${message}` })
  if (name !== undefined && dnsLabel(name).length > 0)
    add('must be a DNS label: lower-case letters, digits and -, at most 63 characters')
  if (name !== undefined && reservedEntryNames.includes(name)) add(`must not be ${name}; use another name`)
  return issuer ? [...found, ...checkIssuer(issuer, [...at, 'issuer'])] : found
}

function checkJwt(entry: JwtEntry, at: At): Finding[] {
  const found: Finding[] = []
  const add = (path: At, message: string) =>
    found.push({ at: [...at, ...path], message: `${nameOf([...at, ...path])} ${message}` })
  const { claimMappings, scope, maxTokenLifetime } = entry
  const lifetime = maxTokenLifetime === undefined ? defaultLifetime : parseDuration(maxTokenLifetime)
  if (lifetime === undefined) add(['maxTokenLifetime'], 'must be a duration such as 10m, 1h or 7d')
  else if (lifetime === 0 || lifetime > longestLifetime)
    add(['maxTokenLifetime'], `must be greater than zero, and at most ${shortDuration(longestLifetime)}`)
  for (const [index, { key = '' }] of (claimMappings?.extra ?? []).entries()) {
    const problem = extraKeyProblem(key)
    if (problem) add(['claimMappings', 'extra', index, 'key'], problem)
  }
  for (const { field, message } of checkScope(scope as Parameters<typeof checkScope>[0])) {
    const path = pathOf(field)
    found.push({ at: [...at, ...path], message: `${nameOf([...at, ...path])}: ${message}` })
  }
  return [...found, ...checkAgent(entry.agent, [...at, 'agent'])]
}

const defaultLifetime = 86_400
const longestLifetime = 365 * 86_400

/** Seconds. An invalid one has the default. */
export const tokenLifetimeOf = ({ maxTokenLifetime }: JwtEntry): number =>
  parseDuration(maxTokenLifetime ?? '') ?? defaultLifetime

/** `spec.scope.projects[0].project`, as the validation of access keys names fields. */
const pathOf = (field: string): At =>
  field
    .replace(/^spec\./, '')
    .split(/\.|(?=\[)/)
    .map(step => (step.startsWith('[') ? Number(step.slice(1, -1)) : step))

/** As in Kubernetes: a lower-case path with a domain. Ours are for the server. */
function extraKeyProblem(key: string): string | undefined {
  const [domain = ''] = key.split('/')
  if (key !== key.toLowerCase() || !key.includes('/') || qualifiedName(key).length > 0)
    return 'must be a lower-case name with a domain, such as example.org/pipeline'
  return /(^|\.)(kubernetes\.io|k8s\.io|platform\.sh)$/.test(domain)
    ? `must not use the domain ${domain}, which is reserved`
    : undefined
}

function checkUnique(placed: readonly Placed[]): Finding[] {
  const found: Finding[] = []
  const seen = new Set<string>()
  const once = (at: At, value: string | undefined, among: string) => {
    if (value === undefined) return
    const key = `${among} ${value}`
    if (seen.has(key))
      found.push({ at, message: `${nameOf(at)}: duplicate value "${value}"; each entry needs its own` })
    seen.add(key)
  }
  for (const { at, entry } of placed) {
    once([...at, 'name'], entry.name, 'name')
    // People and machines may come from the same issuer, because their audiences differ.
    once([...at, 'issuer', 'url'], entry.issuer?.url, `url of ${at[0]}`)
    if ('agent' in entry) once([...at, 'agent', 'uid'], entry.agent?.uid, 'uid of agent')
  }
  return found
}

/** Otherwise an ID token of a person would be valid as the token of a machine. */
function checkAudiences(
  login: readonly (readonly [number, LoginEntry])[],
  jwt: readonly (readonly [number, JwtEntry])[],
): Finding[] {
  return jwt.flatMap(([index, { issuer }]) =>
    (issuer?.audiences ?? []).flatMap((audience, position) => {
      const same = login.find(([, one]) => one.issuer?.url === issuer?.url && one.clientID === audience)
      const at = ['jwt', index, 'issuer', 'audiences', position]
      return same
        ? [{ at, message: `${nameOf(at)} must not be the clientID of login[${same[0]}], which is for people` }]
        : []
    }),
  )
}

/** Otherwise two issuers could give the same name, or an issuer the name of somebody with an access key (D65). */
function checkPrefixes(placed: readonly Placed[]): Finding[] {
  const found: Finding[] = []
  for (const field of ['username', 'groups'] as const) {
    const prefixes = placed.map(({ entry }) => {
      if (entry.name === undefined) return undefined
      return field === 'username' ? usernamePrefixOf(entry) : groupPrefixOf(entry)
    })
    for (const [index, one] of placed.entries()) {
      const prefix = prefixes[index]
      if (prefix === undefined) continue
      const at = placeOf(one, field)
      // A default prefix is as valid as the name, which is checked already.
      const problem = at.at(-1) === 'prefix' ? prefixProblem(prefix, one) : undefined
      if (problem) found.push({ at, message: `${nameOf(at)} ${problem}` })
      if (prefix === '' && prefixes.indexOf('') < index)
        found.push({ at, message: `${nameOf(at)}: only one entry can have the empty prefix` })
      const same = prefixes.findIndex(
        (begin, other) => begin !== undefined && begin !== '' && other !== index && prefix.startsWith(begin),
      )
      if (same !== -1 && !(prefixes[same] === prefix && same > index))
        found.push({
          at,
          message: `${nameOf(at)}: the prefix "${prefix}" begins with the prefix of ${nameOf(placed[same]?.at ?? [])}, "${prefixes[same]}"; choose prefixes that do not`,
        })
    }
  }
  return found
}

const placeOf = ({ at, entry }: Placed, field: 'username' | 'groups'): At =>
  entry.claimMappings?.[field]?.prefix === undefined ? [...at, 'name'] : [...at, 'claimMappings', field, 'prefix']

function prefixProblem(prefix: string, { at }: Placed): string | undefined {
  if (prefix === '') return at[0] === 'jwt' ? 'requires a value: names of an issuer always have a prefix' : undefined
  if (isReservedName(prefix)) return 'must not start with system: or platform:'
  if (/[\x00-\x20\x7f]/.test(prefix)) return 'must not contain blanks or control characters'
  // With the prefix ad, the subject min would become admin.
  return /[A-Za-z0-9]$/.test(prefix) ? 'must end with a separator, such as : or /' : undefined
}
