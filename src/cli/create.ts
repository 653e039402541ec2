// `platform create -f`: creates objects of any kind from files.

import { ApiError } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { isObject, type JsonObject, type Resource } from '../api/object.ts'
import { defineCommand, type Io, SeveralErrors, UsageError } from '../host/command.ts'
import { DirectClusterEndpointToken } from '../kinds/direct-cluster-endpoint-token.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { contextFlag, dryRunFlag, dryRunNote, isDryRun, namespaceFlag, outputFlag } from './flags.ts'
import { notPrinted, shownOnce, warnings } from './keys/shown-once.ts'
import { nameOf, printJson } from './print.ts'
import { type Found, readAllObjects } from './read-objects.ts'
import { namespaceFor } from './resolve-namespace.ts'
import { openSession } from './session.ts'

export const create = defineCommand({
  words: ['create'],
  what: 'Create objects from YAML or JSON files.',
  examples: [
    { what: 'From a file', command: 'platform create -f team.yaml' },
    {
      what: 'Validate standard input on the server without creating anything',
      command: 'platform create -f - --dry-run=server',
    },
  ],
  runsToEnd: true,
  flags: {
    ...contextFlag,
    ...namespaceFlag,
    ...outputFlag,
    ...dryRunFlag,
    file: { type: 'list', short: 'f', value: 'FILE', what: 'The file; - is standard input.', required: true },
  },
  instead: ([word = '']) => {
    if (/^(shared|project)?secrets?$/i.test(word)) return 'to create a secret, set a key: platform set secret NAME KEY'
    const [, container] = /^(project|namespace)s?$/i.exec(word.toLowerCase()) ?? []
    if (container === undefined) return undefined
    return `a ${container} exists as soon as it contains an object: platform set secret NAME KEY --${container} ${container.toUpperCase()}`
  },
  run: async ({ flags }, io) => {
    const { found, failures: unread } = await readAllObjects(io, flags.file)
    const rejected = [...withoutValue(found, flags.output), ...namespaceConflicts(found, flags.namespace)]
    const failures = rejected.length ? [...unread, new UsageError(rejected)] : [...unread]
    if (rejected.length || !found.length) throw new SeveralErrors(failures)
    const session = await openSession(io, flags)
    const dryRun = isDryRun(flags)
    try {
      for (const { kind, object, file, at } of found) {
        const namespace = namespaceFor(kind, { namespace: ownNamespace(object) }, session.namespace)
        try {
          const { object: createdObject } = await session.resources.create(kind, namespace, object, {
            dryRun,
            fieldManager: 'platform',
            fieldValidation: 'Strict',
            warn: warnings(io),
          })
          printCreated(io, kind, createdObject, { output: flags.output, done: `created${dryRunNote(flags)}` })
        } catch (error) {
          // Continue with the other objects, so that one run reports every failure.
          const where = `${file}: ${kind.singular}/${nameIn(object)}${at ? ` (${at})` : ''}`
          failures.push(at || flags.file.length > 1 ? withLocation(error, where) : error)
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
    .map(({ kind, object }) => `-o value prints keys and tokens: ${kind.singular}/${nameIn(object)} has neither`)

const namespaceConflicts = (found: readonly Found[], namespace: string | undefined) =>
  (namespace === undefined ? [] : found)
    .filter(({ kind, object }) => kind.namespaced && (ownNamespace(object) ?? namespace) !== namespace)
    .map(
      ({ kind, object }) =>
        `${kind.singular}/${nameIn(object)} has namespace ${ownNamespace(object)}, but -n is ${namespace}`,
    )

function ownNamespace({ metadata }: JsonObject): string | undefined {
  const own = isObject(metadata) ? metadata['namespace'] : undefined
  return typeof own === 'string' && own ? own : undefined
}

function nameIn({ metadata }: JsonObject): string {
  const { name, generateName } = isObject(metadata) ? metadata : {}
  return String(name ?? generateName ?? '')
}

/** Adds the file and the object to the message of an error. */
const withLocation = (error: unknown, where: string) =>
  error instanceof ApiError
    ? new ApiError(error.code, error.status.reason ?? '', `${where}: ${error.message}`)
    : new Error(`${where}: ${(error as Error).message}`, { cause: error })

const hasValue = (kind: Kind) => kind === OwnedAccessKey || kind === DirectClusterEndpointToken

/** Prints a created object. A key or token is printed now, because the server never returns it again. */
export function printCreated(
  io: Io,
  kind: Kind,
  object: Resource,
  { output, done }: { output: string | undefined; done: string },
): void {
  const secret = shownOnce(object)
  if (output === 'json' || output === 'yaml') printJson(io, object, output)
  else if (output === 'name') {
    io.out(`${nameOf(kind, object)}\n`)
    if (secret !== undefined) io.err(notPrinted('name', object))
  } else if (output === 'value') {
    io.out(`${secret ?? ''}\n`)
  } else io.out(`${nameOf(kind, object)} ${done}${secret === undefined ? '' : `; shown only once: ${secret}`}\n`)
}
