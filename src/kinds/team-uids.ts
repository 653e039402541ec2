// Which team a name in an object means: the uid of the team is kept beside the name, so that a team that is created again
// under the same name does not inherit what the old one had (D61).

import { isObject, type Resource } from '../api/object.ts'

/** A JSON object, team name to uid. Only the server writes it (D26). */
export const teamUidsAnnotation = 'platform.sh/team-uids'

type Uids = { readonly [team: string]: string }
const none: Uids = {}

/** The uids kept in an object. A name without one means the first team that is created under it. */
export function teamUidsOf({ metadata }: Pick<Resource, 'metadata'>): Uids {
  const text = metadata.annotations?.[teamUidsAnnotation]
  return text === undefined ? none : read(text)
}

/** A user of an earlier version may have written the annotation: what is not of its form counts as absent. */
function read(text: string): Uids {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) && Object.values(value).every(uid => typeof uid === 'string') ? (value as Uids) : none
  } catch {
    return none
  }
}

/** The object with these uids; an empty map takes the annotation away. */
export function withTeamUids<T extends Resource>(object: T, uids: Uids): T {
  const { [teamUidsAnnotation]: before, ...others } = object.metadata.annotations ?? {}
  const names = Object.keys(uids).sort()
  const text = names.length ? JSON.stringify(Object.fromEntries(names.map(name => [name, uids[name]]))) : undefined
  if (text === before) return object
  const annotations = text === undefined ? others : { ...others, [teamUidsAnnotation]: text }
  const { annotations: _, ...metadata } = object.metadata
  return { ...object, metadata: Object.keys(annotations).length ? { ...metadata, annotations } : metadata }
}

/** Whether a name in an object means the team with this uid. */
export function meansTeam(object: Pick<Resource, 'metadata'>, team: string, uid: string | undefined): boolean {
  const uids = teamUidsOf(object)
  return !Object.hasOwn(uids, team) || uids[team] === uid
}

const prefix = 'platform:team:'

/** The group that members of a team are in, and the username of its keys (D16). */
export const teamGroup = (team: string): string => prefix + team

/** The team that a group or username stands for. */
export const teamOfGroup = (name: string): string | undefined =>
  name.startsWith(prefix) ? name.slice(prefix.length) : undefined
