// `platform create -f`: objects of every kind from files.

import { ApiError } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { isObject, type JsonObject, type Resource } from '../api/object.ts'
import { defineCommand, type Io, SeveralErrors, UsageError } from '../host/command.ts'
import { DirectClusterEndpointToken } from '../kinds/direct-cluster-endpoint-token.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { contextFlag, dryRunFlag, dryRunNote, isDryRun, namespaceFlag, outputFlag } from './flags.ts'
import { lostBy, shownOnce, warnings } from './keys/shown-once.ts'
import { nameOf, printJson } from './print.ts'
import { type Found, readAllObjects } from './read-objects.ts'
import { namespaceFor } from './resolve-namespace.ts'
import { openSession } from './session.ts'

export const create = defineCommand({
  words: ['create'],
  what: 'Create the objects of a file: YAML or JSON, one or many.',
  examples: [
    { what: 'From a file', command: 'platform create -f team.yaml' },
    {
      what: 'From standard input, only to see whether it would be taken',
      command: 'platform create -f - --dry-run=server',
    },
  ],
  flags: {
    ...contextFlag,
    ...namespaceFlag,
    ...outputFlag,
    ...dryRunFlag,
    file: { type: 'list', short: 'f', value: 'FILE', what: 'The file; - is standard input.', required: true },
  },
  instead: ([word = '']) => {
    if (/^(shared|project)?secrets?$/i.test(word))
      return 'a secret is made by setting a key: platform set secret NAME KEY'
    const [, place] = /^(project|namespace)s?$/i.exec(word.toLowerCase()) ?? []
    if (place === undefined) return undefined
    return `a ${place} is there as soon as something is in it: platform set secret NAME KEY --${place} ${place.toUpperCase()}`
  },
  run: async ({ flags }, io) => {
    const { found, failures: unread } = await readAllObjects(io, flags.file)
    const refused = [...withoutValue(found, flags.output), ...elsewhere(found, flags.namespace)]
    const failures = refused.length ? [...unread, new UsageError(refused)] : [...unread]
    if (refused.length || !found.length) throw new SeveralErrors(failures)
    const session = await openSession(io, flags)
    const dryRun = isDryRun(flags)
    try {
      for (const { kind, object, file, at } of found) {
        const namespace = namespaceFor(kind, { namespace: ownNamespace(object) }, session.namespace)
        try {
          const { object: made } = await session.resources.create(kind, namespace, object, {
            dryRun,
            fieldManager: 'platform',
            fieldValidation: 'Strict',
            warn: warnings(io),
          })
          printMade(io, kind, made, { output: flags.output, done: `created${dryRunNote(flags)}` })
        } catch (error) {
          // The others are tried all the same: who reads the messages sees everything that is to be mended.
          const where = `${file}: ${kind.singular}/${nameIn(object)}${at ? ` (${at})` : ''}`
          failures.push(at || flags.file.length > 1 ? placed(error, where) : error)
        }
      }
    } finally {
      session.close()
    }
    if (failures.length) throw new SeveralErrors(failures)
    return 0
  },
})

const withoutValue = (found: readonly Found[], output: string | undefined) =>
  (output === 'value' ? found : [])
    .filter(({ kind }) => !hasValue(kind))
    .map(({ kind, object }) => `-o value is for keys and tokens: ${kind.singular}/${nameIn(object)} has none`)

const elsewhere = (found: readonly Found[], namespace: string | undefined) =>
  (namespace === undefined ? [] : found)
    .filter(({ kind, object }) => kind.namespaced && (ownNamespace(object) ?? namespace) !== namespace)
    .map(
      ({ kind, object }) =>
        `${kind.singular}/${nameIn(object)} names the namespace ${ownNamespace(object)}, and -n says ${namespace}`,
    )

function ownNamespace({ metadata }: JsonObject): string | undefined {
  const own = isObject(metadata) ? metadata['namespace'] : undefined
  return typeof own === 'string' && own ? own : undefined
}

function nameIn({ metadata }: JsonObject): string {
  const { name, generateName } = isObject(metadata) ? metadata : {}
  return String(name ?? generateName ?? '')
}

/** The same, and where it happened. */
const placed = (error: unknown, where: string) =>
  error instanceof ApiError
    ? new ApiError(error.code, error.status.reason ?? '', `${where}: ${error.message}`)
    : new Error(`${where}: ${(error as Error).message}`, { cause: error })

const hasValue = (kind: Kind) => kind === OwnedAccessKey || kind === DirectClusterEndpointToken

/** What a write answered. What is shown once, a key or a token, is shown: alone with `value`, else behind the name. */
export function printMade(
  io: Io,
  kind: Kind,
  made: Resource,
  { output, done }: { output: string | undefined; done: string },
): void {
  const secret = shownOnce(made)
  if (output === 'json' || output === 'yaml') printJson(io, made, output)
  else if (output === 'name') {
    io.out(`${nameOf(kind, made)}\n`)
    if (secret !== undefined) io.err(lostBy('name', made))
  } else if (output === 'value') {
    io.out(`${secret ?? ''}\n`)
  } else io.out(`${nameOf(kind, made)} ${done}${secret === undefined ? '' : `; shown this once: ${secret}`}\n`)
}
