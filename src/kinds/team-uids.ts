// Stores the uid of a team next to its name in an object (D61).
// A team that is created again under the same name does not inherit the permissions of the old one.

import { isObject, type Resource } from '../api/object.ts'

/** A JSON object that maps team names to uids. Only the server writes it (D26). */
export const teamUidsAnnotation = 'platform.sh/team-uids'

type Uids = { readonly [team: string]: string }
const none: Uids = {}

/** The stored uids of an object. A name without one refers to the first team that is created with it. */
export function teamUidsOf({ metadata }: Pick<Resource, 'metadata'>): Uids {
  const text = metadata.annotations?.[teamUidsAnnotation]
  return text === undefined ? none : read(text)
}

/** A user of an earlier version may have set the annotation, so an invalid value counts as absent. */
function read(text: string): Uids {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) && Object.values(value).every(uid => typeof uid === 'string') ? (value as Uids) : none
  } catch {
    return none
  }
}

/** Sets these uids. An empty map removes the annotation. */
export function withTeamUids<T extends Resource>(object: T, uids: Uids): T {
  const { [teamUidsAnnotation]: before, ...others } = object.metadata.annotations ?? {}
  const names = Object.keys(uids).sort()
  const text = names.length ? JSON.stringify(Object.fromEntries(names.map(name => [name, uids[name]]))) : undefined
  if (text === before) return object
  const annotations = text === undefined ? others : { ...others, [teamUidsAnnotation]: text }
  const { annotations: _, ...metadata } = object.metadata
  return { ...object, metadata: Object.keys(annotations).length ? { ...metadata, annotations } : metadata }
}

/** Whether a name in an object refers to the team with this uid. */
export function meansTeam(object: Pick<Resource, 'metadata'>, team: string, uid: string | undefined): boolean {
  return teamMatcher(object)(team, uid)
}

/** `meansTeam` for many names in one object. Reads the annotation once. */
export function teamMatcher(object: Pick<Resource, 'metadata'>): (team: string, uid: string | undefined) => boolean {
  let uids: Uids | undefined
  return (team, uid) => {
    uids ??= teamUidsOf(object)
    return !Object.hasOwn(uids, team) || uids[team] === uid
  }
}

const prefix = 'platform:team:'

/** The group of a team's members, which is also the username of its keys (D16). */
export const teamGroup = (team: string): string => prefix + team

/** The team of a group or username. */
export const teamOfGroup = (name: string): string | undefined =>
  name.startsWith(prefix) ? name.slice(prefix.length) : undefined

/** A group or username, with the name of the team in place of its username (D23). Others stay as they are. */
export function withTeamName(name: string, teamNamed: (text: string) => string): string {
  const team = teamOfGroup(name)
  return team === undefined ? name : teamGroup(teamNamed(team))
}
