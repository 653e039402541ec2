// `platform get` and `platform list`: shows objects of any kind, once or continuously.

import type { Kind } from '../api/kind.ts'
import { listAll } from '../client/list-watch.ts'
import { type Command, defineCommand, type Given, type Io, SeveralErrors, UsageError } from '../host/command.ts'
import { contextFlag, headersFlag, namespaceFlag, outputFlag, projectFlag, selectorFlags } from './flags.ts'
import { type Source, watchObjects } from './get-watch.ts'
import { printObjects } from './print.ts'
import { kindNamed, readNames } from './resolve-kind.ts'
import { namespaceFor } from './resolve-namespace.ts'
import { warnScopeMayHide } from './scope-denied.ts'
import { openSession, type Session } from './session.ts'
import { objectNamesOf } from './teams/resolve-team.ts'

export const getFlags = {
  ...contextFlag,
  ...namespaceFlag,
  ...projectFlag,
  ...selectorFlags,
  ...outputFlag,
  ...headersFlag,
  watch: { type: 'switch', short: 'w', what: 'Keep watching and print every change.' },
} as const
export type GetFlags = Given<typeof getFlags>['flags']

export const get = defineCommand({
  words: ['get'],
  what: 'Show objects of any kind by name.',
  examples: [
    { what: 'One team', command: 'platform get team web' },
    { what: 'The whole object', command: 'platform get team web -o yaml' },
    { what: 'Watch a kind', command: 'platform get teams -w' },
  ],
  flags: getFlags,
  positionals: [
    { name: 'KIND', what: 'such as team, sharedsecret, accesskey, clusterrole; or KIND/NAME, such as team/web' },
    { name: 'NAME', what: 'names of the objects; default: all', optional: true, many: true },
  ],
  run: async ({ flags, words }, io) => show(io, flags, words),
})

export const list: Command = defineCommand({
  words: ['list'],
  what: 'List the objects of a kind.',
  examples: [
    { what: 'All objects of a kind', command: 'platform list teams' },
    { what: 'In every namespace, by label', command: 'platform list sharedsecrets -A -l tier=front' },
    { what: 'Names for a script', command: 'platform list teams -o name' },
  ],
  flags: getFlags,
  positionals: [{ name: 'KIND', what: 'such as teams, sharedsecrets, accesskeys, clusterroles' }],
  instead: ([word = '']) =>
    `list takes only a kind: platform get ${/^[a-z]{1,32}$/i.test(word) ? word : 'KIND'} NAME shows one`,
  run: async ({ flags, words: [word = ''] }, io) => show(io, flags, [word]),
})

export async function show(io: Io, flags: GetFlags, words: readonly string[], fieldSelector = ''): Promise<number> {
  const { word, names: given } = readNames(words, flags.project)
  const kind = kindNamed(word, given.length ? 'get' : 'list', flags.project)
  if (flags.output === 'value') return showValue(io, flags, kind, given)
  if (given.length && (flags.selector || flags['all-namespaces']))
    throw new UsageError(['NAME cannot be combined with -l or -A'])
  const session = await openSession(io, flags)
  try {
    const names = await objectNamesOf(session, kind, given)
    const namespace = namespaceFor(kind, flags, session.namespace)
    const options = { ...flags, namespace, withNamespace: kind.namespaced && flags['all-namespaces'] }
    const from = sourceOf(session, kind, flags)
    const selection = { ...selectionOf(session, kind, flags), ...(fieldSelector ? { fieldSelector } : {}) }
    if (flags.watch) {
      await byName(session.rows, kind, names, namespace).then(({ failures }) => fail(failures))
      return await watchObjects(io, from, { kinds: [kind], names, options, selection })
    }
    if (names.length) {
      const { objects, failures } = await byName(from, kind, names, namespace)
      if (objects.length) printObjects(io, kind, objects, { ...options, isList: names.length !== 1 })
      fail(failures)
      return 0
    }
    const objects = await Array.fromAsync(listAll(from, kind, selection))
    printObjects(io, kind, objects, { ...options, isList: true })
    if (!objects.length) await warnScopeMayHide(io, session)
    return 0
  } finally {
    session.close()
  }
}

/** One missing object does not hide the others. */
async function byName(from: Pick<Source, 'get'>, kind: Kind, names: readonly string[], namespace: string) {
  const found = await Promise.allSettled(names.map(name => from.get(kind, { namespace, name })))
  return {
    objects: found.flatMap(one => (one.status === 'fulfilled' ? [one.value.object] : [])),
    failures: found.flatMap(one => (one.status === 'rejected' ? [one.reason as unknown] : [])),
  }
}

function fail(failures: readonly unknown[]): void {
  if (failures.length) throw new SeveralErrors(failures)
}

/**
 * Tables use table rows. They do not count as reading a secret (D35), and the scope role platform-cli allows them and no
 * objects (D25).
 */
export const sourceOf = (session: Session, { group }: Kind, { output }: Pick<GetFlags, 'output'>) =>
  group === 'management.platform.sh' && output !== 'json' && output !== 'yaml' ? session.rows : session.resources

async function showValue(io: Io, flags: GetFlags, kind: Kind, names: readonly string[]): Promise<number> {
  const { getSecret } = await import('./secrets/get.ts')
  if (!kind.keepsLastRead || names.length !== 1)
    throw new UsageError([
      '-o value prints one value of a secret: platform get secret NAME.KEY -o value; keys and tokens are shown only when created',
    ])
  const isOfProject = kind.kind === 'ProjectSecret'
  const project = isOfProject ? (flags.project ?? /^p-(.+)$/.exec(flags.namespace ?? '')?.[1]) : undefined
  if (isOfProject && project === undefined)
    throw new UsageError(['--project PROJECT is missing: each project has its own namespace for secrets'])
  return getSecret.run(
    { flags: { ...flags, project, key: undefined, all: false } as never, words: names, args: [] },
    io,
  )
}

export const selectionOf = (session: Session, kind: Kind, flags: GetFlags) => ({
  namespace: flags['all-namespaces'] ? '' : namespaceFor(kind, flags, session.namespace),
  ...(flags.selector ? { labelSelector: flags.selector } : {}),
})
