// `platform link user`: lets an account at an identity provider sign in as a user (D65).

import { defineCommand, UsageError } from '../../host/command.ts'
import { User } from '../../kinds/user.ts'
import { contextFlag, dryRunFlag, dryRunNote, isDryRun } from '../flags.ts'
import { nameOf } from '../print.ts'
import { openSession } from '../session.ts'
import { createUser, findUser } from './resolve-user.ts'

export const linkUser = defineCommand({
  words: ['link', 'user'],
  what: 'Let an account at an identity provider sign in as a user. Creates the User if there is none.',
  examples: [
    {
      what: 'Give the existing name ada to an account',
      command: 'platform link user ada --provider corp --subject 248289761001',
    },
  ],
  flags: {
    ...contextFlag,
    ...dryRunFlag,
    provider: { type: 'text', value: 'NAME', what: 'Name of the provider in auth.yaml.' },
    subject: { type: 'text', value: 'SUBJECT', what: 'Subject of the account: the claim sub of its tokens.' },
    issuer: { type: 'text', value: 'URL', what: 'Issuer of the account. Default: the issuer of the provider.' },
  },
  positionals: [{ name: 'USERNAME', what: 'the user' }],
  run: async ({ flags, words: [username = ''] }, io) => {
    const { provider, subject, issuer } = flags
    const missing = Object.entries({ provider, subject }).flatMap(([flag, value]) => (value ? [] : [`--${flag}`]))
    if (missing.length) throw new UsageError(missing.map(flag => `${flag} is missing`))
    const dryRun = isDryRun(flags)
    const session = await openSession(io, flags)
    try {
      const found = await findUser(session, username)
      const user = found ?? (await createUser(session, username, { dryRun }))
      const spec = { provider: provider ?? '', subject: subject ?? '', ...(issuer ? { issuer } : {}) }
      // The dry run of a create stores no User to link.
      if (found || !dryRun) {
        const ref = { namespace: '', name: user.metadata.name ?? '' }
        await session.resources.act(User, ref, 'link', { kind: 'UserLink', spec }, { fieldManager: 'platform', dryRun })
      }
      io.out(`${nameOf(User, user)} linked to ${subject} at ${provider}${dryRunNote(flags)}\n`)
      return 0
    } finally {
      session.close()
    }
  },
})
