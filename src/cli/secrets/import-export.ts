// `platform import secret` and `platform export secret`: whole secrets from and to files.

import { defineCommand, UsageError } from '../../host/command.ts'
import { confirm } from '../confirm.ts'
import { dryRunFlag, dryRunNote, isDryRun, yesFlag } from '../flags.ts'
import { placeText } from '../resolve-namespace.ts'
import { openSession, type Session } from '../session.ts'
import { formOf, forms, readForm, writeForm } from './formats.ts'
import {
  checkEntries,
  dataOf,
  findSecret,
  mostBytes,
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
    value: 'FORM',
    what: 'Form of the file; by default what its name says, else dotenv.',
    choices: forms,
  },
} as const

export const importSecret = defineCommand({
  words: ['import', 'secret'],
  what: 'Set the keys of a secret from a file: dotenv, JSON, YAML or shell exports.',
  asksBefore: 'removes keys, with --replace',
  examples: [
    { what: 'From a .env file', command: 'platform import secret app -f .env' },
    {
      what: 'And forget the keys that are not in it',
      command: 'platform import secret app -f app.json --replace --yes',
    },
  ],
  flags: {
    ...secretFlags,
    ...formFlag,
    ...dryRunFlag,
    ...yesFlag,
    file: { type: 'text', short: 'f', value: 'FILE', what: 'The file; - is standard input.', required: true },
    replace: { type: 'switch', what: 'Remove the keys that the file does not have.' },
  },
  positionals: [{ name: 'NAME', what: 'the secret' }],
  instead: ([name = '']) => `the file is given by its flag: platform import secret ${nameOrNot(name)} --file FILE`,
  run: async ({ flags, words: [name = ''] }, io) => {
    const bytes = await io.readFile(flags.file)
    // Every byte may be written as six characters.
    if (bytes.length > 6 * mostBytes)
      throw new UsageError([`${flags.file} has ${bytes.length} bytes: too many for one secret`])
    const entries = readForm(formOf(flags.format, flags.file), bytes, flags.file)
    checkEntries(entries)
    if (!entries.size) throw new UsageError([`${flags.file} has no keys in it`])
    const session = await openSession(io, flags)
    try {
      const gone = flags.replace ? await keysBesides(session, name, flags, entries) : []
      const what = `${secretKind(flags).singular}/${name}`
      // A script is told at its first run, not at the first one that would take something away.
      if (gone.length || (flags.replace && !io.ask)) {
        const place = placeText(session, secretRef(session, name, flags).namespace)
        const question = `Set ${[...entries.keys()].join(', ')} of ${what}${place} and remove ${gone.join(', ') || 'every other key'}?`
        await confirm(io, question, flags.yes || isDryRun(flags))
      }
      const done = await writeData(
        session,
        name,
        flags,
        new Map([...entries, ...gone.map(key => [key, null] as const)]),
      )
      if (done === 'unchanged') {
        io.out(`${what} unchanged${dryRunNote(flags)}: it has these values already\n`)
        return 0
      }
      if (isDryRun(flags)) {
        for (const [key, value] of entries) io.out(`${key} (${value.length} bytes) would be set\n`)
        for (const key of gone) io.out(`${key} would be removed\n`)
        return 0
      }
      const removed = gone.length ? `, ${gone.length} removed` : ''
      io.out(`${what} ${done}: ${entries.size} keys set${removed}\n`)
      return 0
    } finally {
      session.close()
    }
  },
})

async function keysBesides(
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
    { what: 'Into the environment of this shell', command: 'eval "$(platform export secret app --format shell)"' },
    { what: 'For a tool that reads JSON', command: 'platform export secret app --format json' },
  ],
  flags: { ...secretFlags, format: { ...formFlag.format, short: 'o', what: 'Form to print; by default dotenv.' } },
  positionals: [{ name: 'NAME', what: 'the secret' }],
  run: async ({ flags, words: [name = ''] }, io) => {
    const session = await openSession(io, flags)
    try {
      const { object, key } = await findSecret(session, name, flags)
      if (key !== undefined)
        throw new UsageError([`export prints whole secrets: platform get secret ${name} -o value prints one value`])
      io.out(writeForm(formOf(flags.format, ''), dataOf(object)))
      return 0
    } finally {
      session.close()
    }
  },
})
