// Finds the team that a command names by its name or username (D23).

import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import { dnsLabel } from '../../api/names.ts'
import { Team } from '../../kinds/team.ts'
import type { Session } from '../session.ts'

/** Returns the name of the team; undefined if no team has this name or username. */
async function findTeam({ resources }: Session, given: string): Promise<string | undefined> {
  const code = await resources.get(Team, { namespace: '', name: given }).then(
    () => 200,
    error => (error instanceof ApiError ? error.code : 0),
  )
  // A member may read its own team only, so the username itself is forbidden instead of missing.
  if (code !== 404 && code !== 403) return given
  const isUsername = !dnsLabel(given).length
  const found = isUsername
    ? await resources.list(Team, { fieldSelector: `spec.username=${given}` }).then(
        ({ items }) => items[0]?.ref.name,
        () => undefined,
      )
    : undefined
  return found ?? (code === 404 ? undefined : given)
}

/** Returns the given name if there is no such team, for commands where that is not an error or the server reports it. */
export const teamNameOf = async (session: Session, given: string): Promise<string> =>
  (await findTeam(session, given)) ?? given

/** For commands about any kind: usernames count only for teams. */
export const objectNamesOf = async (session: Session, kind: Kind, given: readonly string[]): Promise<string[]> =>
  kind === Team ? [...new Set(await Promise.all(given.map(one => teamNameOf(session, one))))] : [...given]

/** Throws NotFound: a reference to a missing team takes effect as soon as somebody creates the team. */
export async function requireTeam(session: Session, given: string): Promise<string> {
  const name = await findTeam(session, given)
  if (name === undefined)
    throw new ApiError(404, 'NotFound', `team "${given}" not found: create it with platform create team ${given}`)
  return name
}
