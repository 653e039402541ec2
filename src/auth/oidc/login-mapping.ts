// Maps the claims of a person to a user: username, groups, display name, e-mail address (D65, D67).

import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import type { LoginEntry } from '../jwt/auth-config-schema.ts'
import { celValue } from '../jwt/cel.ts'
import {
  compileMapping,
  isName,
  MappingError,
  maxName,
  readSource,
  type Source,
  source,
  type Tools,
} from '../jwt/claim-mapping.ts'
import { matchesPattern } from './group-pattern.ts'

export type MappedPerson = {
  readonly username: string
  readonly groups: readonly string[]
  /** Groups that are reserved, or belong to another entry. */
  readonly droppedGroups: number
  readonly displayName?: string | undefined
  readonly email?: string | undefined
  readonly emailVerified?: boolean | undefined
}

/** Throws MappingError. */
export type LoginMapping = (claims: JsonObject) => MappedPerson

/** The prefixes of all other entries. An entry with the empty prefix must not give names that start with them. */
export type OtherPrefixes = { readonly username: readonly string[]; readonly groups: readonly string[] }

const maxGivenGroups = 10_000

export function compileLoginMapping(entry: LoginEntry, tools: Tools, others: OtherPrefixes): LoginMapping {
  const { name, claimMappings = {}, claimValidationRules, groupPatterns } = entry
  const { username, groups, displayName, email } = claimMappings
  const startsWithOther = (prefixes: readonly string[]) => (one: string) =>
    prefixes.some(prefix => prefix !== '' && one.startsWith(prefix))
  const mapping = compileMapping({ name, claimValidationRules, claimMappings: { username, groups } }, tools, {
    ...(groupPatterns ? { keepGroup: group => groupPatterns.some(one => matchesPattern(one, group)) } : {}),
    ...(username?.prefix === '' ? { isForeignUser: startsWithOther(others.username) } : {}),
    ...(groups?.prefix === '' ? { isForeignGroup: startsWithOther(others.groups) } : {}),
    fewerGroups: 'limit them with groupPatterns, or at the provider',
  })
  const shown = {
    displayName: displayName && source(displayName, ['claimMappings', 'displayName'], 'string', tools),
    email: email && source(email, ['claimMappings', 'email'], 'string', tools),
  }
  return claims => {
    if (mapping.groups) checkGroups(claims, mapping.groups)
    const { username, groups, droppedGroups } = mapping.map(claims)
    const input = { claims, values: celValue(claims) }
    const read = (field: keyof typeof shown) => visible(readSource(field, shown[field], input))
    const address = shown.email ? read('email') : visible(claims['email'])
    return {
      username,
      groups,
      droppedGroups,
      displayName: shown.displayName ? read('displayName') : visible(claims['name'] ?? claims['preferred_username']),
      email: address,
      emailVerified:
        address === undefined ? undefined : claims['email_verified'] === true && address === claims['email'],
    }
  }
}

/** For display only, so an odd value is left out. */
const visible = (value: Json | undefined): string | undefined =>
  typeof value === 'string' && value !== '' && isName(value, maxName) ? value : undefined

function checkGroups(claims: JsonObject, { claim, expression }: Source): void {
  // The userinfo endpoint may have it.
  for (const name of overageOf(claims))
    if (claims[name] === undefined && (name === claim || expression?.reads(name)))
      throw new MappingError(
        `the person is in too many groups, so the provider left out the claim ${name}; use app roles, or let the provider send only the groups of this application`,
      )
  const value = claim === undefined ? undefined : claims[claim]
  if (value === undefined || value === null) return
  if (!Array.isArray(value) || !value.every(one => typeof one === 'string'))
    throw new MappingError(`the claim ${claim} must be a list of strings; use an expression for another form`)
  if (value.length > maxGivenGroups)
    throw new MappingError(`the claim ${claim} has more than ${maxGivenGroups} groups; limit them at the provider`)
}

/** The claims that the provider left out because they are too long. Entra ID does that beyond 200 groups. */
function overageOf({ _claim_names: names, hasgroups }: JsonObject): readonly string[] {
  return [
    ...(isObject(names) ? Object.keys(names) : []),
    ...(hasgroups === true || hasgroups === 'true' ? ['groups'] : []),
  ]
}
