// The rules of an entry of `login` in auth.yaml beyond its schema.

import { type Finding, nameOf } from '../../api/config-shape.ts'
import { parseDuration, shortDuration } from '../../api/duration.ts'
import type { At } from '../../api/yaml-source.ts'
import type { LoginEntry } from '../jwt/auth-config-schema.ts'

export type Lifetimes = {
  /** Seconds. */
  readonly refreshAfter: number
  readonly refreshGrace: number
  readonly idle: number
  readonly max: number
}

const defaults: Lifetimes = { refreshAfter: 600, refreshGrace: 3600, idle: 12 * 3600, max: 7 * 86_400 }
const longest = 365 * 86_400
const maxPatterns = 100
const maxPattern = 256
const maxScopes = 50

/** Invalid lifetimes have the default. */
export function lifetimesOf({ lifetimes = {} }: LoginEntry): Lifetimes {
  const read = (field: keyof Lifetimes) => parseDuration(lifetimes[field] ?? '') ?? defaults[field]
  const max = read('max')
  const idle = lifetimes.idle === undefined ? Math.min(defaults.idle, max) : read('idle')
  const refreshAfter =
    lifetimes.refreshAfter === undefined ? Math.min(defaults.refreshAfter, max) : read('refreshAfter')
  return { refreshAfter, refreshGrace: read('refreshGrace'), idle, max }
}

export function checkLogin(entry: LoginEntry, at: At): Finding[] {
  const found: Finding[] = []
  const add = (path: At, message: string) =>
    found.push({ at: [...at, ...path], message: `${nameOf([...at, ...path])} ${message}` })
  const { displayName, clientID, clientSecretFile, clientSecretEnv, scopes = [], groupPatterns = [] } = entry
  for (const [field, value] of Object.entries({ displayName, clientID }))
    if (value?.trim() === '') add([field], 'requires a value')
  if (clientSecretFile !== undefined && clientSecretEnv !== undefined)
    add(['clientSecretEnv'], 'cannot be combined with clientSecretFile; keep one of them')
  if (scopes.length > maxScopes) add(['scopes'], `has more than ${maxScopes} scopes`)
  for (const [index, scope] of scopes.entries())
    if (!/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope)) add(['scopes', index], 'must be a scope without blanks and quotes')
  if (groupPatterns.length > maxPatterns) add(['groupPatterns'], `has more than ${maxPatterns} patterns`)
  for (const [index, pattern] of groupPatterns.entries()) {
    if (pattern === '') add(['groupPatterns', index], 'requires a value')
    if (pattern.length > maxPattern) add(['groupPatterns', index], `has more than ${maxPattern} characters`)
  }
  for (const [field, message] of lifetimeProblems(entry)) add(['lifetimes', field], message)
  return found
}

function lifetimeProblems(entry: LoginEntry): (readonly [string, string])[] {
  const given = Object.entries(entry.lifetimes ?? {}) as [keyof Lifetimes, string][]
  const { max } = lifetimesOf(entry)
  return given.flatMap(([field, text]) => {
    const seconds = parseDuration(text)
    const problem =
      seconds === undefined
        ? 'must be a duration such as 10m, 12h or 7d'
        : seconds === 0 && field !== 'refreshGrace'
          ? 'must be greater than zero'
          : seconds > longest
            ? `must be at most ${shortDuration(longest)}`
            : seconds > max && field !== 'max' && field !== 'refreshGrace'
              ? `must not be longer than max (${shortDuration(max)})`
              : undefined
    return problem === undefined ? [] : [[field, problem] as const]
  })
}
