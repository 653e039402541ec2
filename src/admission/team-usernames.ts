// Replaces the username of a team by its name, wherever an object names a team (D23).
// All other code sees names only, so a new username changes no permission.

import { type Caller, systemCaller } from '../api/caller.ts'
import type { Kind, Question } from '../api/kind.ts'
import type { JsonObject, Resource } from '../api/object.ts'
import type { Decision } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { ProjectSecret } from '../kinds/project-secret.ts'
import { type BindingObject, ClusterRoleBinding, RoleBinding } from '../kinds/rbac.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { Team } from '../kinds/team.ts'
import { withTeamName } from '../kinds/team-uids.ts'

export type TeamNames = {
  /** The name of the team that a text refers to by name or username; otherwise the text. */
  readonly teamNamed: (text: string) => string
}

type Naming = TeamNames & { readonly authorize: (caller: Caller, question: Question) => Decision }

/** A write can name many teams. */
const maxWarnings = 10

/**
 * A text that is stored already stays: it referred to nothing when it was written, and the author of an unrelated change may
 * not be able to grant permissions to the team (D61). A caller who may not get the team does not learn its name.
 */
export function withTeamNames(teams: Naming, { kind, next, old, request: { caller, warn } }: GatedWrite): Resource {
  const rename = renamings.get(kind)
  if (!rename || caller === systemCaller) return next
  let stored: ReadonlySet<string> | undefined
  const found = new Map<string, string>()
  const named = rename(next, text => {
    const name = found.get(text) ?? teams.teamNamed(text)
    if (name === text) return text
    stored ??= textsIn(old, rename)
    const target = { group: Team.group, resource: Team.plural, namespace: '', name }
    if (stored.has(text) || !teams.authorize(caller, { verb: 'get', target }).allowed) return text
    found.set(text, name)
    return name
  })
  for (const [text, name] of [...found].slice(0, maxWarnings))
    warn(`"${text}" is the username of the team "${name}"; the object stores the name`)
  return named
}

type Rename = (object: Resource, nameOf: (text: string) => string) => Resource

function textsIn(object: Resource | undefined, rename: Rename): ReadonlySet<string> {
  const texts = new Set<string>()
  if (object)
    rename(object, text => {
      texts.add(text)
      return text
    })
  return texts
}

/** The list itself if nothing changes, so that most writes copy nothing. */
function mapped<T>(list: readonly T[] | undefined, change: (one: T) => T): readonly T[] | undefined {
  const next = list?.map(change)
  return next?.some((one, index) => one !== list?.[index]) ? next : list
}

/** Keys of a team have the group of the team as username (D16). */
const inGroup = (nameOf: (text: string) => string) => (user: string) => withTeamName(user, nameOf)

type Entry = { readonly users?: readonly string[]; readonly teams?: readonly string[] }
type SharedSpec = {
  readonly owner?: { readonly user?: string; readonly team?: string }
  readonly access?: readonly Entry[]
}

const inShared: Rename = (object, nameOf) => {
  const { owner, access } = (object.spec ?? {}) as SharedSpec
  const user = owner?.user && inGroup(nameOf)(owner.user)
  const team = owner?.team && nameOf(owner.team)
  const isSameOwner = user === owner?.user && team === owner?.team
  const entries = mapped(access, entry => {
    const [users, teams] = [mapped(entry.users, inGroup(nameOf)), mapped(entry.teams, nameOf)]
    if (users === entry.users && teams === entry.teams) return entry
    return { ...entry, ...(users ? { users } : {}), ...(teams ? { teams } : {}) }
  })
  if (isSameOwner && entries === access) return object
  const named = { ...owner, ...(user ? { user } : {}), ...(team ? { team } : {}) }
  const spec = { ...object.spec, ...(owner ? { owner: named } : {}), ...(entries ? { access: entries } : {}) }
  return { ...object, spec: spec as JsonObject }
}

const inSubjects: Rename = (object, nameOf) => {
  const { subjects } = object as BindingObject
  const next = mapped(subjects, one => {
    const name = one.name && inGroup(nameOf)(one.name)
    return name === one.name ? one : { ...one, name }
  })
  return next === subjects ? object : ({ ...object, subjects: next } as Resource)
}

const inKey: Rename = (object, nameOf) => {
  const team = object.spec?.['team'] as string | undefined
  const name = team && nameOf(team)
  return name === team ? object : { ...object, spec: { ...object.spec, team: name } as JsonObject }
}

const renamings: ReadonlyMap<Kind, Rename> = new Map([
  [SharedSecret, inShared],
  [ProjectSecret, inShared],
  [Team, inShared],
  [RoleBinding, inSubjects],
  [ClusterRoleBinding, inSubjects],
  [OwnedAccessKey, inKey],
])
