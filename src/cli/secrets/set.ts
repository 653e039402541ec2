// `platform set secret` and `unset secret`: changes keys of a secret from standard input, files, a prompt or arguments.

import { ApiError } from '../../api/errors.ts'
import { allOf, defineCommand, type Io, UsageError } from '../../host/command.ts'
import { quoted } from '../../host/sanitize.ts'
import { confirm } from '../confirm.ts'
import { dryRunFlag, dryRunNote, isDryRun, yesFlag } from '../flags.ts'
import { locationText } from '../resolve-namespace.ts'
import { openSession } from '../session.ts'
import { checkEntries, findSecret, secretFlags, secretKind, secretRef, secretValue, writeData } from './secret.ts'

export const setSecret = defineCommand({
  words: ['set', 'secret'],
  what: 'Set keys of a secret and keep the others. Creates the secret if it does not exist.',
  examples: [
    { what: 'Prompt for the value without echo', command: 'platform set secret db password' },
    {
      what: 'From standard input, byte for byte',
      command: 'printf %s "$PASSWORD" | platform set secret db password=-',
    },
    { what: 'From files', command: 'platform set secret tls crt=@tls.crt key=@tls.key' },
    { what: 'As an argument, which stays in the history of your shell', command: 'platform set secret db user=shop' },
  ],
  flags: {
    ...secretFlags,
    ...dryRunFlag,
    'allow-empty': { type: 'switch', what: 'Allow empty values. KEY= also sets an empty value.' },
  },
  positionals: [
    { name: 'NAME', what: 'the secret' },
    {
      name: 'KEY[=VALUE]',
      what: 'a key, with VALUE, @FILE or - for standard input; without a value: prompts',
      many: true,
    },
  ],
  instead: ([word = '']) =>
    word.includes('=') ? 'the secret and its key are two arguments: platform set secret NAME KEY=VALUE' : undefined,
  run: async ({ flags, words: [name = '', ...pairs] }, io) => {
    const entries = await readPairs(io, pairs)
    checkEntries(entries)
    if (!flags['allow-empty']) checkFilled(entries, pairs)
    const session = await openSession(io, flags)
    try {
      const done = await writeData(session, name, flags, entries)
      io.out(`${secretKind(flags).singular}/${name} ${done}${dryRunNote(flags)}\n`)
      return 0
    } finally {
      session.close()
    }
  },
})

/** An empty pipe, file or prompt is probably a mistake. */
function checkFilled(entries: ReadonlyMap<string, Uint8Array>, pairs: readonly string[]): void {
  const empty = [...entries].filter(([key, value]) => !value.length && !pairs.includes(`${key}=`))
  if (!empty.length) return
  throw new UsageError(empty.map(([key]) => `the value of ${key} is empty: if intended, use KEY= or --allow-empty`))
}

async function readPairs(io: Io, pairs: readonly string[]): Promise<Map<string, Uint8Array>> {
  const entries = new Map<string, Uint8Array>()
  const parts = pairs.map(pair => ({
    key: /^[^=]*/.exec(pair)?.[0] ?? '',
    value: pair.includes('=') ? pair.slice(pair.indexOf('=') + 1) : undefined,
  }))
  const twice = parts.filter(({ key }, at) => parts.findIndex(one => one.key === key) !== at)
  const problems = twice.map(({ key }) => `the key ${quoted(key)} is given twice`)
  if (parts.filter(({ value }) => value === '-').length > 1) problems.push('only one key can read standard input')
  if (parts.some(({ value }) => value === undefined) && !io.ask)
    problems.push('cannot prompt for a value without a terminal: use KEY=- for standard input or KEY=@FILE for a file')
  if (problems.length) throw new UsageError(problems)
  const isBare = (value: string | undefined) => value !== undefined && value !== '-' && !value.startsWith('@')
  // Read all files before the first prompt, so that a missing file fails early.
  const read = new Map(
    await allOf(
      parts.map(async ({ key, value }) => {
        if (value === undefined) return [key, undefined] as const
        return [key, isBare(value) ? Buffer.from(value) : await io.readFile(value.replace(/^@/, ''))] as const
      }),
    ),
  )
  for (const { key, value } of parts) {
    const bytes = read.get(key) ?? Buffer.from((await io.ask?.(`Value of ${key}: `, 'hidden')) ?? '')
    if (value === '-' && bytes.at(-1) === 0x0a)
      io.err(`platform: warning: the value of ${key} ends with a line break; printf %s omits it\n`)
    entries.set(key, bytes)
  }
  if (parts.some(({ value }) => isBare(value) && value))
    io.err(
      'platform: warning: arguments stay in the shell history and are visible to other users of this machine; use KEY=- or KEY without a value\n',
    )
  return entries
}

export const unsetSecret = defineCommand({
  words: ['unset', 'secret'],
  what: 'Remove keys from a secret.',
  asksBefore: 'removes keys',
  examples: [{ what: 'Ask for confirmation first', command: 'platform unset secret db password' }],
  flags: { ...secretFlags, ...dryRunFlag, ...yesFlag },
  positionals: [
    { name: 'NAME', what: 'the secret' },
    { name: 'KEY', what: 'the keys to remove', many: true },
  ],
  run: async ({ flags, words: [name = '', ...keys] }, io) => {
    const session = await openSession(io, flags)
    try {
      const kind = secretKind(flags)
      const { object } = await findSecret(session, name, flags, { key: keys[0] ?? '' }).catch(error => {
        // A caller who may write but not read cannot check whether the keys exist.
        if (error instanceof ApiError && error.code === 403) return { object: undefined }
        throw error
      })
      if (object) for (const key of keys) secretValue(object, key, kind)
      const isSure = flags.yes || isDryRun(flags)
      const location = locationText(session, secretRef(session, name, flags).namespace)
      await confirm(io, `Remove ${keys.join(', ')} from ${kind.singular}/${name}${location}?`, isSure)
      const done = await writeData(session, name, flags, new Map(keys.map(key => [key, null])))
      io.out(`${kind.singular}/${name} ${done}${dryRunNote(flags)}\n`)
      return 0
    } finally {
      session.close()
    }
  },
})
