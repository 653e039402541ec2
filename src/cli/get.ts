// `platform get` and `platform list`: objects of every kind, once or as they change.

import type { Kind } from '../api/kind.ts'
import { follow, listAll } from '../client/follow.ts'
import { type Command, defineCommand, type Given, type Io, UsageError } from './command.ts'
import { contextFlag, headersFlag, namespaceFlag, outputFlag, projectFlag, selectorFlags } from './flags.ts'
import { kindNamed } from './kind-named.ts'
import { namespaceFor } from './namespace-for.ts'
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
  if (flags.output === 'value') return showValue(io, flags, kind, names)
  if (names.length && (flags.selector || flags['all-namespaces']))
    throw new UsageError(['names and -l or -A exclude each other'])
  const session = await openSession(io, flags)
  try {
    const namespace = namespaceFor(kind, flags, session.namespace)
    const options = { ...flags, namespace, withNamespace: kind.namespaced && flags['all-namespaces'] }
    const from = sourceOf(session, kind, flags)
    if (flags.watch)
      return await watchObjects(io, from, { kind, names, options, selection: selectionOf(session, kind, flags) })
    const objects = names.length
      ? await Promise.all(names.map(async name => (await from.get(kind, { namespace, name })).object))
      : await Array.fromAsync(listAll(from, kind, selectionOf(session, kind, flags)))
    printObjects(io, kind, objects, { ...options, isList: names.length !== 1 })
    return 0
  } finally {
    session.close()
  }
}

/** What a table of secrets shows is had without reading them. */
const sourceOf = (session: Session, { keepsLastRead }: Kind, { output }: Pick<GetFlags, 'output'>) =>
  keepsLastRead && output !== 'json' && output !== 'yaml' ? session.rows : session.resources

async function showValue(io: Io, flags: GetFlags, kind: Kind, names: readonly string[]): Promise<number> {
  const { getSecret } = await import('./secret-get.ts')
  if (!kind.keepsLastRead || names.length !== 1)
    throw new UsageError([
      '-o value is for one value of a secret: platform get secret NAME.KEY -o value; a key or token is shown once, when it is made',
    ])
  const isOfProject = kind.kind === 'ProjectSecret'
  const project = isOfProject ? (flags.project ?? /^p-(.+)$/.exec(flags.namespace ?? '')?.[1]) : undefined
  if (isOfProject && project === undefined)
    throw new UsageError(['--project PROJECT is missing: secrets of projects live in their own namespaces'])
  return getSecret.run(
    { flags: { ...flags, project, key: undefined, all: false } as never, words: names, args: [] },
    io,
  )
}

export const selectionOf = (session: Session, kind: Kind, flags: GetFlags) => ({
  namespace: flags['all-namespaces'] ? '' : namespaceFor(kind, flags, session.namespace),
  ...(flags.selector ? { labelSelector: flags.selector } : {}),
})

type Watched = {
  readonly kind: Kind
  readonly names: readonly string[]
  readonly options: GetFlags & PrintOptions
  readonly selection: ReturnType<typeof selectionOf>
}
type Source = ReturnType<typeof sourceOf>

/** A line a change, with what happened; JSON is a line an object, for programs. */
async function watchObjects(io: Io, from: Source, { kind, names, options, selection }: Watched): Promise<number> {
  const { output } = options
  const changes = follow(from, kind, selection)
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
