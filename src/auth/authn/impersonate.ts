// Impersonation: requires the verb impersonate for every user, group and extra in the headers (wire §1.16).

import type { Caller } from '../../api/caller.ts'
import { badRequest, forbidden } from '../../api/errors.ts'
import type { Question } from '../../api/kind.ts'
import type { Decision } from '../../api/permissions.ts'
import { maxNameLength } from '../../api/schema.ts'
import { withTeamName } from '../../kinds/team-uids.ts'

type Headers = { readonly [name: string]: string | readonly string[] | undefined }

export function isImpersonating(headers: Headers): boolean {
  for (const name in headers) if (name.startsWith('impersonate-')) return true
  return false
}

type Checks = {
  readonly decide: (question: Question) => Decision
  /** The name of the team that a text refers to by name or username; otherwise the text (D23). */
  readonly teamNamed: (text: string) => string
}

/** The impersonated caller. The scope of the key still applies. */
export function impersonate(caller: Caller, headers: Headers, { decide, teamNamed }: Checks): Caller {
  const user = one(headers['impersonate-user'])
  const groups = many(headers['impersonate-group'])
  const uid = one(headers['impersonate-uid'])
  const extra = extras(headers)
  if (user === '')
    throw badRequest('requested impersonation of groups, a uid or extra without impersonating a user name')
  if ([user, ...groups, uid].some(text => text.length > maxNameLength))
    throw badRequest(`a name in an Impersonate header has more than ${maxNameLength} characters`)
  const named = (name: string) => withTeamName(name, teamNamed)
  // Checks the name of a team, not its username. The error repeats the text as sent, because the name may be unknown to the caller.
  const check = (resource: string, name: string, group = '', subresource?: string) => {
    const object = group === '' ? named(name) : name
    const target = { group, resource, namespace: '', name: object, ...(subresource ? { subresource } : {}) }
    if (!decide({ verb: 'impersonate', target }).allowed)
      throw forbidden(
        { group, plural: resource, kind: resource },
        name,
        `User "${caller.username}" cannot impersonate resource "${resource}" in API group "${group}" at the cluster scope`,
      )
  }
  check('users', user)
  for (const group of groups) check('groups', group)
  if (uid) check('uids', uid, 'authentication.k8s.io')
  for (const [key, values] of Object.entries(extra))
    for (const value of values) check('userextras', value, 'authentication.k8s.io', key)
  return {
    identity: 'User',
    username: named(user),
    groups: [...new Set([...groups.map(named), 'system:authenticated'])],
    ...(uid ? { uid } : {}),
    ...(Object.keys(extra).length ? { extra } : {}),
    ...(caller.issuer ? { issuer: caller.issuer } : {}),
    ...(caller.machine ? { machine: caller.machine } : {}),
    ...(caller.key ? { key: caller.key } : {}),
    ...(caller.keyUid ? { keyUid: caller.keyUid } : {}),
    ...(caller.keyUntil ? { keyUntil: caller.keyUntil } : {}),
    ...(caller.scope ? { scope: caller.scope } : {}),
    impersonator: caller.username,
  }
}

const one = (value: Headers[string]): string => textOf(typeof value === 'string' ? value : (value?.[0] ?? ''))

/** Node joins repeated headers with commas; group names cannot contain one. */
const many = (value: Headers[string]): string[] =>
  [value ?? []].flat().flatMap(text =>
    textOf(text)
      .split(',')
      .map(part => part.trim())
      .filter(Boolean),
  )

function extras(headers: Headers): { [key: string]: readonly string[] } {
  const prefix = 'impersonate-extra-'
  const found = Object.entries(headers).filter(([name]) => name.startsWith(prefix))
  return Object.fromEntries(found.map(([name, value]) => [keyOf(name.slice(prefix.length)), many(value)]))
}

function keyOf(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    throw badRequest(`Impersonate-Extra-${name}: the key of an extra must be percent-encoded UTF-8`)
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Node reads headers as Latin-1; names outside ASCII are sent as UTF-8, as every Go client does. */
function textOf(value: string): string {
  if (!/[\x80-\xff]/.test(value)) return value
  try {
    return utf8.decode(Uint8Array.from(value, letter => letter.charCodeAt(0)))
  } catch {
    throw badRequest('a name in an Impersonate header is not valid UTF-8')
  }
}
