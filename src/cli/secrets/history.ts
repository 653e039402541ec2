// `platform history secret`, `diff secret` and `rollback secret`: earlier versions of a secret (D35). Never prints values.

import type { Resource } from '../../api/object.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { quoted } from '../../host/sanitize.ts'
import { confirm } from '../confirm.ts'
import { dryRunFlag, headersFlag, isDryRun, outputFlag, yesFlag } from '../flags.ts'
import { ago, paint, printJson, printTable } from '../print.ts'
import { locationText } from '../resolve-namespace.ts'
import { openSession, type Session } from '../session.ts'
import { dataOf, nameOrNot, secretFlags, secretKind, secretRef, type Where } from './secret.ts'

type Version = {
  readonly number: number
  readonly author?: string
  readonly key?: string
  readonly time?: string
  /** The version that a rollback restored. */
  readonly restored?: number
  readonly changed?: readonly string[]
  readonly current?: boolean
}

export const historySecret = defineCommand({
  words: ['history', 'secret'],
  what: 'List the versions of a secret: who changed which keys and when. Never shows values.',
  examples: [
    {
      what: 'Newest first; an asterisk marks the current version, RESTORED names the version of a rollback',
      command: 'platform history secret db',
    },
    { what: 'For a secret of a project', command: 'platform history secret db --project shop' },
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
      else if (!versions.length) io.err(`platform: ${name} has no version history\n`)
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

const header = ['VERSION', 'TIME', 'AUTHOR', 'KEY', 'RESTORED', 'CHANGED']
const rowOf = ({ number, author = '', key = '', time, restored, changed = [], current }: Version, io: Io) => [
  `${number}${current ? '*' : ''}`,
  `${ago(time, io.now())} ago`,
  author,
  key,
  restored === undefined ? '' : String(restored),
  changed.join(', '),
]

type VersionRef = { readonly name: string; readonly version?: number }
type Loaded = VersionRef & { readonly object: Resource; readonly data: ReadonlyMap<string, Buffer> }

/** Parses NAME or NAME@VERSION. Secret names never contain @. */
function parseVersionRef(word: string, needsVersion: boolean): VersionRef {
  const [, name, version] = /^([^@]+)(?:@([1-9]\d{0,8}))?$/.exec(word) ?? []
  if (name && (version || !needsVersion)) return { name, ...(version ? { version: Number(version) } : {}) }
  const wanted = needsVersion ? 'NAME@VERSION' : 'NAME or NAME@VERSION'
  throw new UsageError([`${quoted(word)} must be ${wanted}, such as ${nameOrNot(word.split('@')[0] || 'db')}@3`])
}

async function read(session: Session, ref: VersionRef, where: Where): Promise<Loaded> {
  const options = ref.version === undefined ? {} : { subresource: `history/${ref.version}` }
  const { object } = await session.resources.get(secretKind(where), secretRef(session, ref.name, where), options)
  return { ...ref, object, data: dataOf(object) }
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
  what: 'Compare two versions of a secret key by key, without showing values: exit code 0 equal, 1 different.',
  examples: [
    { what: 'What differs between two versions', command: 'platform diff secret db@3 db@5' },
    { what: 'Compare with the current version', command: 'platform diff secret db@3' },
  ],
  flags: {
    ...secretFlags,
    ...headersFlag,
    output: { ...outputFlag.output, choices: ['table', 'json', 'yaml'] },
  },
  positionals: [
    { name: 'NAME@VERSION', what: 'a version; without @VERSION the current one' },
    { name: 'NAME@VERSION', what: 'the other version; default: the current one', optional: true },
  ],
  run: async ({ flags, words: [one = '', other] }, io) => {
    const first = parseVersionRef(one, false)
    const second = other === undefined ? { name: first.name } : parseVersionRef(other, false)
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

const label = ({ name, version }: VersionRef) => (version === undefined ? name : `${name}@${version}`)

/** Shows the length of values, like `get secret`. */
function printKeys(io: Io, from: Loaded, to: Loaded, { keys, bare }: { keys: readonly Difference[]; bare: boolean }) {
  const masked = (value: Buffer | undefined) => (value ? `*** (${value.length} bytes)` : '')
  const rows = keys.map(({ key, change }) => [marks[change], key, masked(from.data.get(key)), masked(to.data.get(key))])
  if (!rows.length) io.err('platform: neither version has keys\n')
  else printTable(io, ['', 'KEY', label(from), label(to)], rows, bare)
}

export const rollbackSecret = defineCommand({
  words: ['rollback', 'secret'],
  what: 'Restore the data of an earlier version, as a new version.',
  asksBefore: 'changes or removes keys',
  examples: [
    { what: 'Show what changes and ask for confirmation', command: 'platform rollback secret db@3' },
    { what: 'Only show what would change', command: 'platform rollback secret db@3 --dry-run=server' },
  ],
  flags: { ...secretFlags, ...dryRunFlag, ...yesFlag },
  positionals: [{ name: 'NAME@VERSION', what: 'the version to restore' }],
  run: async ({ flags, words: [word = ''] }, io) => {
    const ref = parseVersionRef(word, true)
    const session = await openSession(io, flags)
    try {
      const [old, now] = await Promise.all([read(session, ref, flags), read(session, { name: ref.name }, flags)])
      const keys = differences(now.data, old.data).filter(({ change }) => change !== 'equal')
      const what = `${secretKind(flags).singular}/${ref.name}`
      if (!keys.length) {
        io.out(`${what} unchanged: already equal to version ${ref.version}\n`)
        return 0
      }
      const summary = keys.map(({ key, change }) => `${key} ${change}`).join(', ')
      const dryRun = isDryRun(flags)
      const at = locationText(session, secretRef(session, ref.name, flags).namespace)
      const question = `Roll ${what}${at} back to version ${ref.version}: ${summary}?`
      await confirm(io, question, flags.yes || dryRun)
      await write(session, now, old.data, { where: flags, dryRun })
      io.out(
        `${what} ${dryRun ? 'would be rolled back' : paint(io, 'green', 'rolled back')} to version ${ref.version}: ${summary}\n`,
      )
      return 0
    } finally {
      session.close()
    }
  },
})

/** Requires the compared resourceVersion, so that a concurrent change causes a conflict. */
async function write(
  session: Session,
  { name, object, data: now }: Loaded,
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
