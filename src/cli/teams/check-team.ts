// Checks that a team exists before a command refers to it.

import { ApiError } from '../../api/errors.ts'
import { Team } from '../../kinds/team.ts'
import type { Session } from '../session.ts'

/** A reference to a missing team takes effect as soon as somebody creates the team. Skipped if the caller may not read teams. */
export async function checkTeam({ resources }: Session, name: string): Promise<void> {
  const code = await resources.get(Team, { namespace: '', name }).then(
    () => 200,
    error => (error instanceof ApiError ? error.code : 0),
  )
  if (code === 404)
    throw new ApiError(404, 'NotFound', `team "${name}" not found: create it with platform create team ${name}`)
}
