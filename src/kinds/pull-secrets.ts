// Image pull secrets of a team: its members may get them (D23). The team remembers their uids, so that a secret that is
// created again under the same name is not shared by an old entry (D61).

import { canonical } from '../api/encode.ts'
import { type FieldError, invalidValue, isEnough, notSupported, required } from '../api/errors.ts'
import { dnsLabel, dnsSubdomain } from '../api/names.ts'
import { isObject, type Json, type Ref, type Resource } from '../api/object.ts'
import { list, type Static, struct, text } from '../api/schema.ts'
import { isDataKey } from './secret-data.ts'

const group = 'management.platform.sh'
const plurals = { SharedSecret: 'sharedsecrets', ProjectSecret: 'projectsecrets' } as const
type Pullable = keyof typeof plurals

const pullSecret = struct('A SharedSecret or ProjectSecret that members of the team may get.', {
  apiGroup: text(`API group of the secret. Defaults to ${group}, the only one allowed.`),
  kind: text('Kind of the secret: SharedSecret, which is the default, or ProjectSecret.'),
  secretName: text('Name of the secret. Required.'),
  secretNamespace: text('Namespace of the secret. Defaults to default.'),
  key: text('Key within the secret.'),
})
export type PullSecret = Static<typeof pullSecret>

export const imagePullSecrets = list(pullSecret, 'Image pull secrets that members of the team may get.')

/** An entry of an earlier version may have another kind. It refers to nothing then. */
export const pullTarget = ({ apiGroup, kind, secretName = '', secretNamespace }: PullSecret) => ({
  group: apiGroup || group,
  resource: plurals[(kind || 'SharedSecret') as Pullable] ?? `${(kind ?? '').toLowerCase()}s`,
  namespace: secretNamespace || 'default',
  name: secretName,
})
export type PullTarget = ReturnType<typeof pullTarget>

/** Only the server writes it (D26). */
const uidsAnnotation = 'platform.sh/pull-secret-uids'
type Uids = { readonly [secret: string]: string }

export const pullKey = ({ resource, namespace, name }: Ref & { readonly resource: string }) =>
  `${resource}/${namespace}/${name}`

type Team = Pick<
  Resource<{ readonly imagePullSecrets?: readonly PullSecret[] | undefined }, unknown>,
  'metadata' | 'spec'
>

const targetsOf = ({ spec }: Team): readonly PullTarget[] => (spec?.imagePullSecrets ?? []).map(pullTarget)

export const hasPullUids = ({ metadata }: Pick<Resource, 'metadata'>): boolean =>
  metadata.annotations?.[uidsAnnotation] !== undefined

export function pullUidsOf({ metadata }: Pick<Resource, 'metadata'>): Uids {
  try {
    const value: unknown = JSON.parse(metadata.annotations?.[uidsAnnotation] ?? '{}')
    return isObject(value) && Object.values(value).every(uid => typeof uid === 'string') ? (value as Uids) : {}
  } catch {
    return {} // written by a user of an earlier version
  }
}

/** The secrets that members may get, with their uids. An entry without a uid grants nothing. */
export function pulledBy(team: Team): readonly (PullTarget & { readonly uid: string })[] {
  const uids = pullUidsOf(team)
  return targetsOf(team).flatMap(target => {
    const uid = Object.hasOwn(uids, pullKey(target)) ? uids[pullKey(target)] : undefined
    return uid === undefined || target.group !== group ? [] : [{ ...target, uid }]
  })
}

export function withPullUids<T extends Resource>(team: T, uids: Uids): T {
  const { [uidsAnnotation]: before, ...others } = team.metadata.annotations ?? {}
  const keys = Object.keys(uids).sort()
  const value = keys.length ? JSON.stringify(Object.fromEntries(keys.map(key => [key, uids[key]]))) : undefined
  if (value === before) return team
  const annotations = value === undefined ? others : { ...others, [uidsAnnotation]: value }
  const { annotations: _, ...metadata } = team.metadata
  return { ...team, metadata: Object.keys(annotations).length ? { ...metadata, annotations } : metadata }
}

/** Stored entries stay valid. They grant nothing without a uid. */
export function checkPullSecrets(
  entries: readonly PullSecret[] = [],
  before: readonly PullSecret[] = [],
): FieldError[] {
  const known = new Set(before.map(printed))
  const errors: FieldError[] = []
  for (const [index, entry] of entries.entries())
    if (!isEnough(errors) && !known.has(printed(entry)))
      errors.push(...checkEntry(entry, `spec.imagePullSecrets[${index}]`))
  return errors
}

const printed = (entry: PullSecret) => canonical(entry as unknown as Json)

function checkEntry({ apiGroup, kind, secretName, secretNamespace, key }: PullSecret, at: string): FieldError[] {
  const errors: FieldError[] = []
  const check = (field: string, value: string, problems: readonly string[]) => {
    for (const problem of problems) errors.push(invalidValue(`${at}.${field}`, value, problem))
  }
  if (apiGroup && apiGroup !== group) errors.push(notSupported(`${at}.apiGroup`, apiGroup, [group]))
  if (kind && !Object.hasOwn(plurals, kind)) errors.push(notSupported(`${at}.kind`, kind, Object.keys(plurals)))
  if (!secretName) errors.push(required(`${at}.secretName`, 'name of the secret'))
  else check('secretName', secretName, dnsSubdomain(secretName))
  if (secretNamespace) check('secretNamespace', secretNamespace, dnsLabel(secretNamespace))
  if (kind === 'ProjectSecret' && !/^p-.+/.test(secretNamespace ?? ''))
    check('secretNamespace', secretNamespace ?? '', [
      'a project secret is in the namespace of its project, p-<project>',
    ])
  if (key && !isDataKey(key)) check('key', key, ["must consist of alphanumeric characters, '-', '_' or '.'"])
  return errors
}
