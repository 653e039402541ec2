// `platform history secret`, `diff secret` and `rollback secret`: earlier versions of a secret (D35). Values are compared here and never shown.

import type { Resource } from '../../api/object.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { quoted } from '../../host/sanitize.ts'
import { confirm } from '../confirm.ts'
import { dryRunFlag, headersFlag, isDryRun, outputFlag, yesFlag } from '../flags.ts'
import { ago, paint, printJson, printTable } from '../print.ts'
import { placeText } from '../resolve-namespace.ts'
import { openSession, type Session } from '../session.ts'
import { dataOf, nameOrNot, secretFlags, secretKind, secretRef, type Where } from './secret.ts'

type Version = {
  readonly number: number
  readonly author?: string
  readonly key?: string
  readonly time?: string
  readonly changed?: readonly string[]
  readonly current?: boolean
}

export const historySecret = defineCommand({
  words: ['history', 'secret'],
  what: 'List the versions of a secret: who changed which keys, and when; never a value.',
  examples: [
    { what: 'Newest first; the star is the one that is there now', command: 'platform history secret db' },
    { what: 'Of a secret of a project', command: 'platform history secret db --project shop' },
  ],
  flags: {
    ...secretFlags,
    ...headersFlag,
    output: { ...outputFlag.output, choices: ['table', 'json', 'yaml', 'name'] },
  },
  positionals: [{ name: 'NAME', what: 'the secret' }],
  run: async ({ flags, words: [name = ''] }, io) => {
    const session = await openSession(io, flags)
    try {
      const ref = secretRef(session, name, flags)
      const { object } = await session.resources.get(secretKind(flags), ref, { subresource: 'history' })
      const versions = (object.status?.['versions'] ?? []) as readonly Version[]
      if (flags.output === 'json' || flags.output === 'yaml') printJson(io, object, flags.output)
      else if (flags.output === 'name') for (const { number } of versions) io.out(`${name}@${number}\n`)
      else if (!versions.length) io.err(`platform: ${name} has no versions of its own\n`)
      else
        printTable(
          io,
          header,
          versions.map(one => rowOf(one, io)),
          flags['no-headers'],
        )
      return 0
    } finally {
      session.close()
    }
  },
})

const header = ['VERSION', 'TIME', 'AUTHOR', 'KEY', 'CHANGED']
const rowOf = ({ number, author = '', key = '', time, changed = [], current }: Version, io: Io) => [
  `${number}${current ? '*' : ''}`,
  `${ago(time, io.now())} ago`,
  author,
  key,
  changed.join(', '),
]

type Place = { readonly name: string; readonly version?: number }
type Shown = Place & { readonly object: Resource; readonly data: ReadonlyMap<string, Buffer> }

/** NAME or NAME@VERSION; no name of a secret has an @ in it. */
function placeOf(word: string, needsVersion: boolean): Place {
  const [, name, version] = /^([^@]+)(?:@([1-9]\d{0,8}))?$/.exec(word) ?? []
  if (name && (version || !needsVersion)) return { name, ...(version ? { version: Number(version) } : {}) }
  const wanted = needsVersion ? 'NAME@VERSION' : 'NAME or NAME@VERSION'
  throw new UsageError([`${quoted(word)} must be ${wanted}, such as ${nameOrNot(word.split('@')[0] || 'db')}@3`])
}

async function read(session: Session, place: Place, where: Where): Promise<Shown> {
  const options = place.version === undefined ? {} : { subresource: `history/${place.version}` }
  const { object } = await session.resources.get(secretKind(where), secretRef(session, place.name, where), options)
  return { ...place, object, data: dataOf(object) }
}

type Difference = { readonly key: string; readonly change: 'equal' | 'changed' | 'added' | 'removed' }

function differences(from: ReadonlyMap<string, Buffer>, to: ReadonlyMap<string, Buffer>): Difference[] {
  return [...new Set([...from.keys(), ...to.keys()])].toSorted().map(key => {
    const [before, after] = [from.get(key), to.get(key)]
    if (!before) return { key, change: 'added' }
    if (!after) return { key, change: 'removed' }
    return { key, change: before.equals(after) ? 'equal' : 'changed' }
  })
}

const marks = { equal: '=', changed: '~', added: '+', removed: '-' } as const

export const diffSecret = defineCommand({
  words: ['diff', 'secret'],
  what: 'Compare two versions of a secret, key by key, without showing a value: exit code 0 equal, 1 different.',
  examples: [
    { what: 'What differs between two versions', command: 'platform diff secret db@3 db@5' },
    { what: 'Since then', command: 'platform diff secret db@3' },
  ],
  flags: {
    ...secretFlags,
    ...headersFlag,
    output: { ...outputFlag.output, choices: ['table', 'json', 'yaml'] },
  },
  positionals: [
    { name: 'NAME@VERSION', what: 'a version; without @VERSION what is there now' },
    { name: 'NAME@VERSION', what: 'the other; by default what is there now', optional: true },
  ],
  run: async ({ flags, words: [one = '', other] }, io) => {
    const first = placeOf(one, false)
    const second = other === undefined ? { name: first.name } : placeOf(other, false)
    const session = await openSession(io, flags)
    try {
      const [from, to] = await Promise.all([read(session, first, flags), read(session, second, flags)])
      const keys = differences(from.data, to.data)
      const equal = keys.every(({ change }) => change === 'equal')
      if (flags.output === 'json' || flags.output === 'yaml')
        printJson(io, { from: first, to: second, equal, keys }, flags.output)
      else printKeys(io, from, to, { keys, bare: flags['no-headers'] })
      return equal ? 0 : 1
    } finally {
      session.close()
    }
  },
})

const label = ({ name, version }: Place) => (version === undefined ? name : `${name}@${version}`)

/** How long a value is may be seen by whoever may see its key, as `get secret` shows it. */
function printKeys(io: Io, from: Shown, to: Shown, { keys, bare }: { keys: readonly Difference[]; bare: boolean }) {
  const masked = (value: Buffer | undefined) => (value ? `*** (${value.length} bytes)` : '')
  const rows = keys.map(({ key, change }) => [marks[change], key, masked(from.data.get(key)), masked(to.data.get(key))])
  if (!rows.length) io.err('platform: neither has any keys\n')
  else printTable(io, ['', 'KEY', label(from), label(to)], rows, bare)
}

export const rollbackSecret = defineCommand({
  words: ['rollback', 'secret'],
  what: 'Write the data of an earlier version, all of it and nothing else; that is a new version.',
  asksBefore: 'changes or removes keys',
  examples: [
    { what: 'Says what changes, and asks', command: 'platform rollback secret db@3' },
    { what: 'Only says it', command: 'platform rollback secret db@3 --dry-run=server' },
  ],
  flags: { ...secretFlags, ...dryRunFlag, ...yesFlag },
  positionals: [{ name: 'NAME@VERSION', what: 'the version to go back to' }],
  run: async ({ flags, words: [word = ''] }, io) => {
    const place = placeOf(word, true)
    const session = await openSession(io, flags)
    try {
      const [old, now] = await Promise.all([read(session, place, flags), read(session, { name: place.name }, flags)])
      const keys = differences(now.data, old.data).filter(({ change }) => change !== 'equal')
      const what = `${secretKind(flags).singular}/${place.name}`
      if (!keys.length) {
        io.out(`${what} unchanged: it is as in version ${place.version} already\n`)
        return 0
      }
      const told = keys.map(({ key, change }) => `${key} ${change}`).join(', ')
      const dryRun = isDryRun(flags)
      const at = placeText(session, secretRef(session, place.name, flags).namespace)
      const question = `Make ${what}${at} as in version ${place.version}: ${told}?`
      await confirm(io, question, flags.yes || dryRun)
      await write(session, now, old.data, { where: flags, dryRun })
      io.out(`${what} ${dryRun ? 'would be' : paint(io, 'green', 'is')} as in version ${place.version}: ${told}\n`)
      return 0
    } finally {
      session.close()
    }
  },
})

/** Only over what was compared: a change of somebody else in between is a conflict, and not lost. */
async function write(
  session: Session,
  { name, object, data: now }: Shown,
  old: ReadonlyMap<string, Buffer>,
  { where, dryRun }: { readonly where: Where; readonly dryRun: boolean },
): Promise<void> {
  const data = Object.fromEntries([
    ...[...now.keys()].map(key => [key, null] as const),
    ...[...old].map(([key, value]) => [key, value.toString('base64')] as const),
  ])
  const { resourceVersion = '' } = object.metadata
  const body = { metadata: { resourceVersion }, spec: { data } }
  const options = { fieldManager: 'platform', dryRun }
  await session.resources.patch(secretKind(where), secretRef(session, name, where), { type: 'merge', body }, options)
}
