// `platform delete`: deletes objects of any kind by name, after confirmation.

import { defineCommand, SeveralErrors, UsageError } from '../host/command.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { confirm } from './confirm.ts'
import { contextFlag, dryRunFlag, dryRunNote, isDryRun, namespaceFlag, projectFlag, yesFlag } from './flags.ts'
import { keyInUse, keyInUseWarning } from './keys/key-in-use.ts'
import { kindNamed, readNames } from './resolve-kind.ts'
import { locationText, namespaceFor } from './resolve-namespace.ts'
import { openSession } from './session.ts'
import { objectNamesOf } from './teams/resolve-team.ts'

export const remove = defineCommand({
  words: ['delete'],
  what: 'Delete objects by name.',
  asksBefore: 'deletes anything',
  examples: [
    { what: 'Ask for confirmation first', command: 'platform delete team web' },
    { what: 'In a script', command: 'platform delete accesskey ci old-ci --yes' },
  ],
  runsToEnd: true,
  flags: { ...contextFlag, ...namespaceFlag, ...projectFlag, ...dryRunFlag, ...yesFlag },
  positionals: [
    { name: 'KIND', what: 'such as team, secret, accesskey; or KIND/NAME, such as team/web' },
    { name: 'NAME', what: 'names of the objects', optional: true, many: true },
  ],
  run: async ({ flags, words }, io) => {
    const { word, names: given } = readNames(words, flags.project)
    const kind = kindNamed(word, 'delete', flags.project)
    if (!given.length) throw new UsageError([`NAME is missing: names of the ${kind.plural} to delete`])
    const dryRun = isDryRun(flags)
    const session = await openSession(io, flags)
    try {
      const names = await objectNamesOf(session, kind, given)
      const namespace = namespaceFor(kind, flags, session.namespace)
      const shown = names.map(name => `${kind.singular}/${name}`).join(', ')
      const isSure = flags.yes || dryRun
      const key = kind === OwnedAccessKey && !dryRun ? await keyInUse(session) : undefined
      const warning = key ? await keyInUseWarning(session, { ...key, names, now: io.now() }) : ''
      if (warning && isSure) io.err(`platform: warning: ${warning}\n`)
      const location = locationText(session, namespace)
      await confirm(io, `Delete ${shown}${location}${warning && `; ${warning}`}?`, isSure)
      const failures: unknown[] = []
      // The key in use goes last: after that, the server rejects every further delete.
      for (const name of names.toSorted((a, b) => Number(a === key?.own) - Number(b === key?.own)))
        try {
          const answer = await session.resources.delete(kind, { namespace, name }, { dryRun })
          const done = 'document' in answer ? 'is being deleted' : 'deleted'
          io.out(`${kind.singular}/${name} ${done}${dryRunNote(flags)}\n`)
        } catch (error) {
          failures.push(error)
        }
      if (failures.length) throw new SeveralErrors(failures)
      return 0
    } finally {
      session.close()
    }
  },
})
