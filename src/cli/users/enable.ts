// `platform enable user`: enables a disabled user, and shows which access keys work again (D63).

import { ApiError, conflict, ignoreNotFound } from '../../api/errors.ts'
import type { Resource } from '../../api/object.ts'
import { defineCommand } from '../../host/command.ts'
import { User } from '../../kinds/user.ts'
import { contextFlag, dryRunFlag, dryRunNote, isDryRun } from '../flags.ts'
import { flagsOf } from '../keys/access-key-lifecycle.ts'
import { nameOf, printTable } from '../print.ts'
import { openSession, type Session } from '../session.ts'
import { findUser } from './resolve-user.ts'
import { visibleKeys } from './visible-objects.ts'

export const enableUser = defineCommand({
  words: ['enable', 'user'],
  what: 'Enable a disabled user, and show which access keys of the user work again.',
  examples: [{ what: 'Somebody came back', command: 'platform enable user corp:ada' }],
  flags: { ...contextFlag, ...dryRunFlag },
  positionals: [{ name: 'NAME', what: 'username of the user, or name of the User' }],
  run: async ({ flags, words: [given = ''] }, io) => {
    const session = await openSession(io, flags)
    try {
      const user = await requireUser(session, given)
      const { name = '', deletionTimestamp } = user.metadata
      if (deletionTimestamp !== undefined) throw conflict(User, name, 'the user is being deleted')
      if (user.spec?.['disabled'] !== true) {
        io.out(`${nameOf(User, user)} unchanged: it is not disabled\n`)
        return 0
      }
      const change = { type: 'merge', body: { spec: { disabled: false } } } as const
      const options = { fieldManager: 'platform', dryRun: isDryRun(flags) }
      await session.resources.patch(User, { namespace: '', name }, change, options).catch(withExplanation)
      io.out(`${nameOf(User, user)} enabled${dryRunNote(flags)}\n`)
      if (options.dryRun) return 0
      const username = String(user.spec['username'])
      io.out(`${username} can sign in again. Sessions and direct-cluster tokens from before stay invalid.\n`)
      const keys = await visibleKeys({ io, session }, username)
      const rows = keys.map(key => [key.metadata.name ?? '', stateOf(key, io.now())])
      if (rows.length) printTable(io, ['ACCESS-KEY', 'STATE'], rows)
      else io.out(`${username} has no access keys that you can see\n`)
      return 0
    } finally {
      session.close()
    }
  },
})

/** A username of one User can be the name of another. The username counts, as for other commands. */
async function requireUser(session: Session, given: string): Promise<Resource> {
  const found = await findUser(session, given)
  if (found) return found
  const named = await session.resources.get(User, { namespace: '', name: given }).catch(ignoreNotFound)
  if (named) return named.object
  throw new ApiError(404, 'NotFound', `user "${given}" not found: platform list users lists the users`)
}

function withExplanation(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== 403) throw error
  const needed =
    'to enable a user, you need permission to patch users, and every permission that the user gets back: ' +
    'from roles, teams, groups of access keys and single objects, and from any group that the identity provider may give'
  throw new ApiError(403, 'Forbidden', `${error.message}\n${needed}; ask an administrator`)
}

function stateOf(key: Resource, now: number): string {
  const flags = flagsOf(key, now)
  if (flags.includes('disabled')) return `disabled; platform enable accesskey ${key.metadata.name} enables it`
  if (flags.includes('expired')) return 'expired'
  return key.spec?.['parent'] ? 'works again, if the identity provider still accepts its sign-in' : 'works again'
}
