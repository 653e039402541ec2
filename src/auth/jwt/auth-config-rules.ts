// The rules of an auth.yaml beyond its schema: unique names and issuers, prefixes, URLs, scopes.

import { X509Certificate } from 'node:crypto'
import { type Finding, nameOf, withoutGaps } from '../../api/config-shape.ts'
import { dnsLabel, isReservedName, qualifiedName } from '../../api/names.ts'
import type { At } from '../../api/yaml-source.ts'
import { checkScope } from '../../kinds/scope-validation.ts'
import type { AuthConfig, JwtEntry } from './auth-config-schema.ts'

/** An entry without its parts of the wrong type, which were reported already. */
export type PartialEntry = JwtEntry | undefined
export type PartialConfig = Omit<AuthConfig, 'jwt'> & { readonly jwt?: readonly PartialEntry[] | undefined }

const maxIssuers = 64
const reservedEntryNames = ['system', 'platform']

export const usernamePrefixOf = (entry: JwtEntry) => entry.claimMappings?.username?.prefix ?? `${entry.name}:`
export const groupPrefixOf = (entry: JwtEntry) => entry.claimMappings?.groups?.prefix ?? `${entry.name}:`

export function checkAuthRules(config: PartialConfig): Finding[] {
  // A value of the wrong type leaves a gap, which the rules do not expect.
  const jwt = (config.jwt ?? []).map(entry => entry && (withoutGaps(entry) as JwtEntry))
  const found = jwt.flatMap((entry, index) => (entry ? checkEntry(entry, ['jwt', index]) : []))
  if (jwt.length > maxIssuers)
    found.push({ at: ['jwt', maxIssuers], message: `jwt has more than ${maxIssuers} entries; remove some` })
  return [...found, ...checkUnique(jwt), ...checkPrefixes(jwt)]
}

function checkEntry(entry: JwtEntry, at: At): Finding[] {
  const found: Finding[] = []
  const add = (path: At, message: string) =>
    found.push({ at: [...at, ...path], message: `${nameOf([...at, ...path])} ${message}` })
  const { name, issuer, claimMappings, scope } = entry
  if (name !== undefined && dnsLabel(name).length > 0)
    add(['name'], 'must be a DNS label: lower-case letters, digits and -, at most 63 characters')
  if (name !== undefined && reservedEntryNames.includes(name)) add(['name'], `must not be ${name}; use another name`)
  if (issuer) found.push(...checkIssuer(issuer, [...at, 'issuer']))
  for (const [index, { key = '' }] of (claimMappings?.extra ?? []).entries()) {
    const problem = extraKeyProblem(key)
    if (problem) add(['claimMappings', 'extra', index, 'key'], problem)
  }
  for (const { field, message } of checkScope(scope as Parameters<typeof checkScope>[0])) {
    const path = pathOf(field)
    found.push({ at: [...at, ...path], message: `${nameOf([...at, ...path])}: ${message}` })
  }
  return found
}

/** `spec.scope.projects[0].project`, as the validation of access keys names fields. */
const pathOf = (field: string): At =>
  field
    .replace(/^spec\./, '')
    .split(/\.|(?=\[)/)
    .map(step => (step.startsWith('[') ? Number(step.slice(1, -1)) : step))

function checkIssuer(issuer: NonNullable<JwtEntry['issuer']>, at: At): Finding[] {
  const found: Finding[] = []
  const add = (field: string, message: string) =>
    found.push({ at: [...at, field], message: `${nameOf([...at, field])} ${message}` })
  const { url, discoveryURL, certificateAuthority, certificateAuthorityFile, audiences } = issuer
  for (const [field, value] of Object.entries({ url, discoveryURL }))
    if (value !== undefined) {
      const problem = urlProblem(value)
      if (problem) add(field, problem)
    }
  if (url !== undefined && url === discoveryURL) add('discoveryURL', 'must differ from url; remove it')
  if (certificateAuthority !== undefined && certificateAuthorityFile !== undefined)
    add('certificateAuthorityFile', 'cannot be combined with certificateAuthority; keep one of them')
  if (certificateAuthority !== undefined && !isCertificate(certificateAuthority))
    add('certificateAuthority', 'does not contain a PEM certificate')
  if (audiences?.length === 0) add('audiences', 'requires at least one audience')
  for (const [index, audience] of (audiences ?? []).entries()) {
    const path = [...at, 'audiences', index]
    if (audience === '') found.push({ at: path, message: `${nameOf(path)} requires a value` })
    else if (audience.startsWith('platform:'))
      found.push({
        at: path,
        message: `${nameOf(path)} must not start with platform:, which is for direct-cluster tokens; use the URL of this server`,
      })
  }
  return found
}

export function isCertificate(text: string): boolean {
  try {
    return Boolean(new X509Certificate(text).raw)
  } catch {
    return false
  }
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** Plain HTTP would let the network choose the keys. */
export function urlProblem(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (!url || /[\s#]/.test(value)) return 'must be an https URL without a fragment'
  if (url.username || url.password) return 'must not contain a username or password'
  if (url.protocol === 'https:' || (url.protocol === 'http:' && loopback.test(url.hostname))) return undefined
  return 'must be an https URL (http only for loopback addresses)'
}

/** As in Kubernetes: a lower-case path with a domain. Ours are for the server. */
function extraKeyProblem(key: string): string | undefined {
  const [domain = ''] = key.split('/')
  if (key !== key.toLowerCase() || !key.includes('/') || qualifiedName(key).length > 0)
    return 'must be a lower-case name with a domain, such as example.org/pipeline'
  return /(^|\.)(kubernetes\.io|k8s\.io|platform\.sh)$/.test(domain)
    ? `must not use the domain ${domain}, which is reserved`
    : undefined
}

type Entries = readonly PartialEntry[]

function checkUnique(jwt: Entries): Finding[] {
  const found: Finding[] = []
  const seen = new Set<string>()
  const once = (at: At, value: string | undefined) => {
    if (value === undefined) return
    const key = `${at.slice(2).join('.')} ${value}`
    if (seen.has(key))
      found.push({ at, message: `${nameOf(at)}: duplicate value "${value}"; each entry needs its own` })
    seen.add(key)
  }
  for (const [index, entry] of jwt.entries()) {
    once(['jwt', index, 'name'], entry?.name)
    once(['jwt', index, 'issuer', 'url'], entry?.issuer?.url)
  }
  return found
}

/** Otherwise two issuers could give the same name, or an issuer the name of somebody with an access key (D65). */
function checkPrefixes(jwt: Entries): Finding[] {
  const found: Finding[] = []
  for (const field of ['username', 'groups'] as const) {
    const prefixes = jwt.map(entry => {
      if (entry?.name === undefined) return undefined
      return field === 'username' ? usernamePrefixOf(entry) : groupPrefixOf(entry)
    })
    for (const [index, prefix] of prefixes.entries()) {
      if (prefix === undefined) continue
      const at = placeOf(jwt[index], index, field)
      // A default prefix is as valid as the name, which is checked already.
      const problem = at.at(-1) === 'prefix' ? prefixProblem(prefix) : undefined
      if (problem) found.push({ at, message: `${nameOf(at)} ${problem}` })
      const same = prefixes.findIndex(
        (one, other) => one !== undefined && one !== '' && other !== index && prefix.startsWith(one),
      )
      if (same !== -1 && !(prefixes[same] === prefix && same > index))
        found.push({
          at,
          message: `${nameOf(at)}: the prefix "${prefix}" begins with the prefix of jwt[${same}], "${prefixes[same]}"; choose prefixes that do not`,
        })
    }
  }
  return found
}

const placeOf = (entry: PartialEntry, index: number, field: 'username' | 'groups'): At =>
  entry?.claimMappings?.[field]?.prefix === undefined
    ? ['jwt', index, 'name']
    : ['jwt', index, 'claimMappings', field, 'prefix']

function prefixProblem(prefix: string): string | undefined {
  if (prefix === '') return 'requires a value: names of an issuer always have a prefix'
  if (isReservedName(prefix)) return 'must not start with system: or platform:'
  if (/[\x00-\x20\x7f]/.test(prefix)) return 'must not contain blanks or control characters'
  // With the prefix ad, the subject min would become admin.
  return /[A-Za-z0-9]$/.test(prefix) ? 'must end with a separator, such as : or /' : undefined
}
