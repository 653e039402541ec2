// `platform import secret` and `platform export secret`: whole secrets from and to files.

import { defineCommand, UsageError } from '../../host/command.ts'
import { confirm } from '../confirm.ts'
import { dryRunFlag, dryRunNote, isDryRun, yesFlag } from '../flags.ts'
import { locationText } from '../resolve-namespace.ts'
import { openSession, type Session } from '../session.ts'
import { formOf, forms, readForm, writeForm } from './formats.ts'
import {
  checkEntries,
  dataOf,
  findSecret,
  maxBytes,
  nameOrNot,
  secretFlags,
  secretKind,
  secretRef,
  type Where,
  writeData,
} from './secret.ts'

const formFlag = {
  format: {
    type: 'text',
    value: 'FORMAT',
    what: 'Format of the file. Default: from its name, else dotenv.',
    choices: forms,
  },
} as const

export const importSecret = defineCommand({
  words: ['import', 'secret'],
  what: 'Set the keys of a secret from a file: dotenv, JSON, YAML or shell exports.',
  asksBefore: 'removes keys (with --replace)',
  examples: [
    { what: 'From a .env file', command: 'platform import secret app -f .env' },
    {
      what: 'Also remove the keys that are not in the file',
      command: 'platform import secret app -f app.json --replace --yes',
    },
  ],
  flags: {
    ...secretFlags,
    ...formFlag,
    ...dryRunFlag,
    ...yesFlag,
    file: { type: 'text', short: 'f', value: 'FILE', what: 'The file; - is standard input.', required: true },
    replace: { type: 'switch', what: 'Remove keys that are not in the file.' },
  },
  positionals: [{ name: 'NAME', what: 'the secret' }],
  instead: ([name = '']) => `pass the file with --file: platform import secret ${nameOrNot(name)} --file FILE`,
  run: async ({ flags, words: [name = ''] }, io) => {
    const bytes = await io.readFile(flags.file)
    // A format may need up to six characters per byte.
    if (bytes.length > 6 * maxBytes)
      throw new UsageError([
        `${flags.file} is too large for a secret: ${bytes.length} bytes; its values can have at most ${maxBytes} bytes`,
      ])
    const entries = readForm(formOf(flags.format, flags.file), bytes, flags.file)
    checkEntries(entries)
    if (!entries.size) throw new UsageError([`${flags.file} contains no keys`])
    const session = await openSession(io, flags)
    try {
      const removed = flags.replace ? await keysNotIn(session, name, flags, entries) : []
      const what = `${secretKind(flags).singular}/${name}`
      // Without a terminal, --replace always needs --yes: a script then fails on its first run, not on the first that removes keys.
      if (removed.length || (flags.replace && !io.ask)) {
        const location = locationText(session, secretRef(session, name, flags).namespace)
        const question = `Set ${[...entries.keys()].join(', ')} of ${what}${location} and remove ${removed.join(', ') || 'every other key'}?`
        await confirm(io, question, flags.yes || isDryRun(flags))
      }
      const done = await writeData(
        session,
        name,
        flags,
        new Map([...entries, ...removed.map(key => [key, null] as const)]),
      )
      if (done === 'unchanged') {
        io.out(`${what} unchanged${dryRunNote(flags)}: the values are already set\n`)
        return 0
      }
      if (isDryRun(flags)) {
        for (const [key, value] of entries) io.out(`${key} (${value.length} bytes) would be set\n`)
        for (const key of removed) io.out(`${key} would be removed\n`)
        return 0
      }
      const removedText = removed.length ? `, ${removed.length} removed` : ''
      io.out(`${what} ${done}: ${entries.size} keys set${removedText}\n`)
      return 0
    } finally {
      session.close()
    }
  },
})

async function keysNotIn(
  session: Session,
  name: string,
  where: Where,
  entries: ReadonlyMap<string, unknown>,
): Promise<string[]> {
  const list = await session.resources.list(secretKind(where), {
    namespace: secretRef(session, name, where).namespace,
    fieldSelector: `metadata.name=${name}`,
  })
  const [found] = list.items
  return found ? [...dataOf(found.object).keys()].filter(key => !entries.has(key)) : []
}

export const exportSecret = defineCommand({
  words: ['export', 'secret'],
  what: 'Print a secret as dotenv, JSON, YAML or shell exports.',
  examples: [
    { what: 'Set variables in the current shell', command: 'eval "$(platform export secret app --format shell)"' },
    { what: 'For a tool that reads JSON', command: 'platform export secret app --format json' },
  ],
  flags: { ...secretFlags, format: { ...formFlag.format, short: 'o', what: 'Output format. Default: dotenv.' } },
  positionals: [{ name: 'NAME', what: 'the secret' }],
  run: async ({ flags, words: [name = ''] }, io) => {
    const session = await openSession(io, flags)
    try {
      const { object, key } = await findSecret(session, name, flags)
      if (key !== undefined)
        throw new UsageError([`export prints whole secrets; for one value use platform get secret ${name} -o value`])
      io.out(writeForm(formOf(flags.format, ''), dataOf(object)))
      return 0
    } finally {
      session.close()
    }
  },
})
