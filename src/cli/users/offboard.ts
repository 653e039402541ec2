// `platform offboard`: disables a user, and lists what the user still owns (D63).

import { defineCommand } from '../../host/command.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { ProjectSecret } from '../../kinds/project-secret.ts'
import { SharedSecret } from '../../kinds/shared-secret.ts'
import { Team } from '../../kinds/team.ts'
import { User } from '../../kinds/user.ts'
import { confirm } from '../confirm.ts'
import { contextFlag, yesFlag } from '../flags.ts'
import { nameOf, printTable } from '../print.ts'
import { openSession, type Session } from '../session.ts'
import { createUser, findUser } from './resolve-user.ts'
import { type Viewer, visibleKeys, visibleObjects } from './visible-objects.ts'

export const offboard = defineCommand({
  words: ['offboard'],
  what: 'Disable a user, and list what the user still owns.',
  asksBefore: 'ends the keys, sessions and tokens of the user',
  examples: [{ what: 'Somebody left the company', command: 'platform offboard corp:ada' }],
  flags: { ...contextFlag, ...yesFlag },
  positionals: [{ name: 'USERNAME', what: 'the user' }],
  run: async ({ flags, words: [username = ''] }, io) => {
    const session = await openSession(io, flags)
    try {
      await confirm(
        io,
        `Disable the user ${username} on ${session.server}, and end all keys, sessions and tokens of the user?`,
        flags.yes,
      )
      io.out(`${await disable(session, username)}\n`)
      const owned = await ownedBy({ io, session }, username)
      if (owned.length === 0) io.out(`${username} owns nothing that you can see\n`)
      else {
        io.out(`${username} still owns:\n`)
        printTable(io, ['KIND', 'NAMESPACE', 'NAME'], owned, false)
      }
      return 0
    } finally {
      session.close()
    }
  },
})

async function disable(session: Session, username: string): Promise<string> {
  const user = await findUser(session, username)
  if (user?.spec?.['disabled'] === true) return `${nameOf(User, user)} unchanged: it is disabled already`
  if (!user) {
    const created = await createUser(session, username, { dryRun: false, disabled: true })
    return `${nameOf(User, created)} created, disabled`
  }
  const ref = { namespace: '', name: user.metadata.name ?? '' }
  const body = { spec: { disabled: true } }
  await session.resources.patch(User, ref, { type: 'merge', body }, { fieldManager: 'platform' })
  return `${nameOf(User, user)} disabled`
}

async function ownedBy(viewer: Viewer, username: string): Promise<string[][]> {
  const rows: string[][] = []
  for (const kind of [SharedSecret, ProjectSecret, Team])
    for await (const { metadata, spec } of visibleObjects(viewer, kind))
      if ((spec?.['owner'] as { user?: string } | undefined)?.user === username)
        rows.push([kind.singular, metadata.namespace ?? '', metadata.name ?? ''])
  const keys = await visibleKeys(viewer, username)
  return [...rows, ...keys.map(({ metadata }) => [OwnedAccessKey.singular, '', metadata.name ?? ''])]
}
