// `platform get` and `platform list`: objects of every kind, once or as they change.

import type { Kind } from '../api/kind.ts'
import { follow, listAll } from '../client/follow.ts'
import { type Command, defineCommand, type Given, type Io, UsageError } from './command.ts'
import { contextFlag, headersFlag, namespaceFlag, outputFlag, projectFlag, selectorFlags } from './flags.ts'
import { kindNamed, namespaceFor } from './kind-named.ts'
import { cellsOf, headerOf, nameOf, type PrintOptions, printJson, printObjects, printTable } from './print.ts'
import { openSession, type Session } from './session.ts'

export const getFlags = {
  ...contextFlag,
  ...namespaceFlag,
  ...projectFlag,
  ...selectorFlags,
  ...outputFlag,
  ...headersFlag,
  watch: { type: 'switch', short: 'w', what: 'Go on and print every change.' },
} as const
export type GetFlags = Given<typeof getFlags>['flags']

export const get = defineCommand({
  words: ['get'],
  what: 'Show objects of any kind by name.',
  examples: [
    { what: 'One team', command: 'platform get team web' },
    { what: 'All of it', command: 'platform get team web -o yaml' },
    { what: 'Follow a kind', command: 'platform get teams -w' },
  ],
  flags: getFlags,
  positionals: [
    { name: 'KIND', what: 'such as team, sharedsecret, accesskey, clusterrole' },
    { name: 'NAME', what: 'which of them; none: all', optional: true, many: true },
  ],
  run: async ({ flags, words: [word = '', ...names] }, io) => show(io, flags, word, names),
})

export const list: Command = defineCommand({
  words: ['list'],
  what: 'List the objects of a kind.',
  examples: [
    { what: 'Everything of a kind', command: 'platform list teams' },
    { what: 'In every namespace, by label', command: 'platform list sharedsecrets -A -l tier=front' },
    { what: 'Names for a script', command: 'platform list teams -o name' },
  ],
  flags: getFlags,
  positionals: [{ name: 'KIND', what: 'such as teams, sharedsecrets, accesskeys, clusterroles' }],
  run: async ({ flags, words: [word = ''] }, io) => show(io, flags, word, []),
})

export async function show(io: Io, flags: GetFlags, word: string, names: readonly string[]): Promise<number> {
  const kind = kindNamed(word, names.length ? 'get' : 'list', flags.project)
  if (flags.output === 'value') throw new UsageError(['-o value is for secrets, keys and tokens'])
  if (names.length && (flags.selector || flags['all-namespaces']))
    throw new UsageError(['names and -l or -A exclude each other'])
  const session = await openSession(io, flags)
  try {
    const options = { ...flags, withNamespace: kind.namespaced && flags['all-namespaces'] }
    if (flags.watch) return await watchObjects(io, session, { kind, names, options })
    const objects = names.length
      ? await Promise.all(names.map(name => oneOf(session, kind, name, flags)))
      : await Array.fromAsync(listAll(session.resources, kind, selectionOf(session, kind, flags)))
    printObjects(io, kind, objects, { ...options, isList: names.length !== 1 })
    return 0
  } finally {
    session.close()
  }
}

async function oneOf(session: Session, kind: Kind, name: string, flags: GetFlags) {
  const namespace = namespaceFor(kind, flags, session.namespace)
  return (await session.resources.get(kind, { namespace, name })).object
}

export const selectionOf = (session: Session, kind: Kind, flags: GetFlags) => ({
  namespace: flags['all-namespaces'] ? '' : namespaceFor(kind, flags, session.namespace),
  ...(flags.selector ? { labelSelector: flags.selector } : {}),
})

type Watched = { readonly kind: Kind; readonly names: readonly string[]; readonly options: GetFlags & PrintOptions }

/** A line a change, with what happened; JSON is a line an object, for programs. */
async function watchObjects(io: Io, session: Session, { kind, names, options }: Watched): Promise<number> {
  const { output } = options
  const changes = follow(session.resources, kind, selectionOf(session, kind, options))
  const header = ['EVENT', ...headerOf(kind, options)]
  let isFirst = !options['no-headers']
  for await (const { type, object } of changes) {
    if (names.length && !names.includes(object.metadata.name ?? '')) continue
    if (output === 'json') io.out(`${JSON.stringify({ type, object })}\n`)
    else if (output === 'yaml') {
      io.out('---\n')
      printJson(io, object, 'yaml')
    } else if (output === 'name') io.out(`${nameOf(kind, object)}\n`)
    else printTable(io, header, [[type, ...cellsOf(kind, object, options, io.now())]], !isFirst)
    isFirst = false
  }
  return 0
}
