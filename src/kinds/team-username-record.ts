// TeamUsernameRecord: an internal kind that makes usernames of teams unique, also for concurrent writes of replicas (D23).

import { defineKind, type KindOf } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { type Static, struct, text } from '../api/schema.ts'

const spec = struct('The reservation.', { team: text('Name of the team.') })

/** Its name is the username. It belongs to the last team that claimed the username, which may have another one by now. */
export const TeamUsernameRecord: KindOf<Resource<Static<typeof spec>, unknown>> = defineKind({
  kind: 'TeamUsernameRecord',
  plural: 'teamusernamerecords',
  singular: 'teamusernamerecord',
  namespaced: false,
  description: 'TeamUsernameRecord reserves a username other than its name for a team.',
  spec,
  served: false,
  sample: { apiVersion: 'management.platform.sh/v1', kind: 'TeamUsernameRecord', metadata: { name: 'shop' } },
})
