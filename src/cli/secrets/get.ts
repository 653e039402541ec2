// `platform get secret`: shows the keys and sizes of a secret, or values on request.

import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { quoted } from '../../host/sanitize.ts'
import { headersFlag, outputFlag } from '../flags.ts'
import { printJson, printObjects, printTable } from '../print.ts'
import { openSession } from '../session.ts'
import {
  dataOf,
  findSecret,
  keyFlag,
  nameOrNot,
  parseSecret,
  readable,
  secretFlags,
  secretKind,
  secretValue,
  staleness,
  textOf,
} from './secret.ts'

export const getSecret = defineCommand({
  words: ['get', 'secret'],
  what: 'Show the keys of a secret, or the value of one key.',
  examples: [
    { what: 'List its keys', command: 'platform get secret db' },
    { what: 'One value', command: 'platform get secret db.password' },
    { what: 'The exact bytes, for a file', command: 'platform get secret tls.key -o value > tls.key' },
    { what: 'An earlier version, and one value of it', command: 'platform get secret db@3' },
    { command: 'platform get secret db@3.password' },
    { what: 'A secret of a project', command: 'platform get secret db.password --project shop' },
  ],
  flags: {
    ...secretFlags,
    ...keyFlag,
    ...outputFlag,
    ...headersFlag,
    all: { type: 'switch', what: 'Show the values of all keys.' },
  },
  positionals: [
    {
      name: 'NAME[@VERSION][.KEY]',
      what: 'the secret, one of its versions, or a key; the longest name that exists wins',
    },
  ],
  instead: ([name = '']) =>
    `expected one secret; separate the key with a dot: platform get secret ${nameOrNot(name)}.KEY`,
  run: async ({ flags, words: [word = ''] }, io) => {
    const wanted = parseSecret(word)
    if (wanted.key !== undefined && flags.key !== undefined)
      throw new UsageError([`--key and ${quoted(word)} both name a key: remove one of them`])
    const session = await openSession(io, flags)
    try {
      const { name, version, key: ownKey } = wanted
      const { object, key } = await findSecret(session, name, flags, { key: flags.key ?? ownKey, version })
      const kind = secretKind(flags)
      const stale = staleness(object)
      if (stale) io.err(`platform: warning: ${stale}\n`)
      if (key !== undefined) printValue(io, key, secretValue(object, key, kind), flags.output)
      else if (flags.all) printAll(io, dataOf(object), flags)
      else if (flags.output === 'value')
        throw new UsageError([`-o value prints one value: platform get secret ${word}.KEY -o value`])
      else if (flags.output === 'name' && version !== undefined) io.out(`${object.metadata.name}@${version}\n`)
      else if (flags.output === 'json' || flags.output === 'yaml' || flags.output === 'name')
        printObjects(io, kind, [object], { ...flags, isList: false })
      else {
        const rows = [...dataOf(object)].map(([name, value]) => [name, String(value.length)])
        printTable(io, ['KEY', 'BYTES'], rows, flags['no-headers'])
      }
      return 0
    } finally {
      session.close()
    }
  },
})

function printValue(io: Io, key: string, value: Buffer, output: string | undefined): void {
  const text = textOf(value)
  const isPlain = text !== undefined && !/[\x00-\x08\x0b-\x1f\x7f-\x9f]/.test(text)
  if (output === 'name') io.out(`${key}\n`)
  else if (output === 'json' || output === 'yaml') printJson(io, { [key]: readable(value) }, output)
  else if (io.isTerminal && output !== 'value' && !isPlain)
    throw new UsageError([
      `${key} is not printable text (${value.length} bytes): write it to a file or a pipe with -o value`,
    ])
  else {
    io.out(value)
    if (io.isTerminal && output !== 'value' && !text?.endsWith('\n')) io.out('\n')
  }
}

type OutputFlags = { readonly output?: string | undefined; readonly 'no-headers': boolean }

function printAll(io: Io, data: ReadonlyMap<string, Buffer>, flags: OutputFlags): void {
  const { output } = flags
  if (output === 'value') throw new UsageError(['-o value prints one value and cannot be combined with --all'])
  if (output === 'json' || output === 'yaml')
    printJson(io, Object.fromEntries([...data].map(([key, value]) => [key, readable(value)])), output)
  else if (output === 'name') for (const key of data.keys()) io.out(`${key}\n`)
  else {
    const rows = [...data].map(([key, value]) => [key, textOf(value) ?? `<${value.length} bytes, not text>`])
    printTable(io, ['KEY', 'VALUE'], rows, flags['no-headers'])
  }
}
