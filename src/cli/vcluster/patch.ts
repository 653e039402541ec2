// `platform vcluster patch`: previews the object that the syncer would write.

import { writeYaml } from '../../api/codec.ts'
import { dnsLabel } from '../../api/names.ts'
import type { Json, JsonObject } from '../../api/object.ts'
import { allOf, type Command, defineCommand, type Flags, type Io, UsageError } from '../../host/command.ts'
import type { Config } from '../../vcluster/config/config.ts'
import { configFlags, readConfig, syncReferencesFlag } from '../../vcluster/config/read.ts'
import { parseKind } from '../../vcluster/config/reference-kinds.ts'
import type { Patch } from '../../vcluster/patch/patch.ts'
import {
  missingIdentity,
  type Preview,
  previewToHost,
  previewToVirtual,
  syncedKindOf,
} from '../../vcluster/patch/preview.ts'
import { checkRoundTrip, type RoundTrip } from '../../vcluster/patch/round-trip.ts'
import { openSandbox, type Sandbox } from '../../vcluster/patch/sandbox.ts'
import { stripSyncMetadata } from '../../vcluster/patch/strip-sync-metadata.ts'
import { contextFlag } from '../flags.ts'
import { readObject } from '../read-object.ts'
import { diffOf } from './diff.ts'

export const vclusterFlags = {
  ...configFlags,
  ...syncReferencesFlag,
  name: { type: 'text', value: 'VC', what: 'Name of the virtual cluster.', required: true, check: dnsLabel },
  namespace: {
    type: 'text',
    short: 'n',
    value: 'NS',
    what: 'Its namespace on the host.',
    required: true,
    check: dnsLabel,
  },
  'object-namespace': {
    type: 'text',
    value: 'NS',
    what: 'Namespace of virtual objects without metadata.namespace.',
    check: dnsLabel,
  },
} as const satisfies Flags

export const vclusterPatch = defineCommand({
  words: ['vcluster', 'patch'],
  what: 'Print the Endpoints that the syncer would write: exit code 1 if it would fail or does not round-trip.',
  examples: [
    {
      what: 'The object on the host',
      command: 'platform vcluster patch -f vcluster.yaml --name vc --namespace team --object endpoints.yaml',
    },
    {
      what: 'Only the changes of the patches',
      command: 'platform vcluster patch -f vcluster.yaml --name vc --namespace team --object endpoints.yaml -o diff',
    },
    {
      what: 'Evaluated by the server',
      command: 'platform vcluster patch -f vcluster.yaml --name vc --namespace team --object endpoints.yaml --server',
    },
    {
      what: 'The object synced back from the host',
      command: 'platform vcluster patch -f vcluster.yaml --name vc --namespace team --object host.yaml --reverse',
    },
  ],
  flags: {
    ...vclusterFlags,
    object: {
      type: 'text',
      value: 'FILE',
      what: 'The Endpoints of the virtual cluster; with --reverse, of the host.',
      required: true,
    },
    'host-object': { type: 'text', value: 'FILE', what: 'The existing object on the host.' },
    'virtual-object': {
      type: 'text',
      value: 'FILE',
      what: 'With --reverse: the existing object in the virtual cluster.',
    },
    server: {
      type: 'switch',
      what: 'Evaluate on the server of the current context (PatchPreview), with the same output.',
    },
    ...contextFlag,
    reverse: { type: 'switch', what: 'Preview the sync from the host to the virtual cluster.' },
    'check-round-trip': { type: 'switch', what: 'Also check that reverseExpression reverses expression.' },
    output: {
      type: 'text',
      short: 'o',
      value: 'FORMAT',
      what: 'Output format.',
      choices: ['yaml', 'json', 'diff', 'trace'],
      default: 'yaml',
    },
  },
  run: async ({ flags }, io) => {
    const own = flags['object-namespace']
    const [config, object, host, virtual] = await allOf([
      readConfig(flags, io),
      readObject(flags.object, io, flags.reverse ? undefined : { namespace: own }),
      flags['host-object'] === undefined ? null : readObject(flags['host-object'], io),
      flags['virtual-object'] === undefined ? null : readObject(flags['virtual-object'], io, { namespace: own }),
    ])
    const nameless = flags.reverse
      ? missingIdentity({ virtualObject: virtual, hostObject: object }, flags.name)
      : undefined
    if (nameless !== undefined) throw new UsageError([`${flags.object}: ${nameless}`])
    if (flags.server) {
      // Loaded only if needed: a local preview needs no connection.
      const { askServer } = await import('./server-preview.ts')
      return print(await askServer({ flags, config, object, host, virtual }, io), flags, io)
    }
    const sandbox = openSandbox({ workers: 1 })
    try {
      // Start the worker first, so that the trace does not include its start.
      await sandbox.evaluate({ expression: 'value', values: [0] })
      const syncReferences = flags['sync-references'].flatMap(kind => parseKind(kind) ?? [])
      const options = { config, name: flags.name, namespace: flags.namespace, syncReferences, sandbox, now: io.now }
      const preview = flags.reverse
        ? await previewToVirtual({ virtualObject: virtual, hostObject: object }, options)
        : await previewToHost({ virtualObject: object, hostObject: host }, options)
      const trips = flags['check-round-trip'] ? await roundTrips({ ...options, object }) : []
      return print({ preview, trips }, flags, io)
    } finally {
      await sandbox.close()
    }
  },
})

/** Returns the exit code. */
function print(
  { preview, trips }: { readonly preview: Preview; readonly trips: readonly RoundTrip[] },
  flags: { readonly output: string; readonly 'check-round-trip': boolean },
  io: Io,
): number {
  const shown = flags['check-round-trip'] ? trips : []
  // Do not print an object that would not be written. The trace shows how far the patches got.
  if (preview.problem === undefined || flags.output === 'trace') io.out(show(preview, flags.output))
  for (const note of preview.notes) io.err(`platform: note: ${note}\n`)
  if (preview.problem !== undefined) io.err(`platform: ${preview.problem}\n`)
  for (const trip of shown) report(trip, io)
  return preview.problem === undefined && shown.every(trip => !trip.broken.length) ? 0 : 1
}

/** The same command under the word that the documentation uses for it. */
export const vclusterPreview: Command = {
  ...vclusterPatch,
  words: ['vcluster', 'preview'],
  what: 'Alias of platform vcluster patch.',
  examples: vclusterPatch.examples.map(one => ({ ...one, command: one.command.replace(' patch ', ' preview ') })),
}

type TripOptions = {
  readonly config: Config
  readonly object: JsonObject
  readonly sandbox: Sandbox
  readonly name: string
  readonly namespace: string
}

function roundTrips({ config, object, sandbox, name, namespace }: TripOptions): Promise<readonly RoundTrip[]> {
  const { clusterDomain } = config.networking.advanced
  return checkRoundTrip({
    patches: config.sync.toHost[syncedKindOf(object).setting].patches as readonly Patch[],
    object,
    sandbox,
    context: { vcluster: { name, namespace, config }, virtualObject: object, hostObject: null },
    dns: { vcluster: name, namespace, clusterDomain },
  })
}

const MAX_SHOWN = 3

function report({ index, path, passed, rejected, broken, skipped }: RoundTrip, io: Io): void {
  const where = `patch ${index} at ${path || '""'}`
  const all = passed + broken.length
  const result = broken.length ? `${broken.length} of ${all} values do not round-trip` : `${passed} values round-trip`
  const outcome =
    skipped === undefined ? `${result}${rejected ? `, ${rejected} rejected` : ''}` : `skipped, it ${skipped}`
  io.err(`platform: round trip: ${where}: ${outcome}\n`)
  for (const one of broken.slice(0, MAX_SHOWN))
    io.err(`platform:   ${short(one.value)} → ${short(one.there)} → ${short(one.back)}\n`)
}

function short(value: Json): string {
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

function show(preview: Preview, output: string): string {
  if (output === 'json') return `${JSON.stringify(preview.object, undefined, 2)}\n`
  if (output === 'diff')
    return diffOf(writeYaml(stripSyncMetadata(preview.plain)), writeYaml(stripSyncMetadata(preview.object)))
  return output === 'trace' ? traceOf(preview) : writeYaml(preview.object)
}

function traceOf({ trace, referencedObjects, failure }: Preview): string {
  const lines = trace.flatMap(({ index, path, changes, unchanged, skipped, ms }) => [
    `patch ${index} at ${path || '""'} (${ms.toFixed(1)} ms)`,
    ...changes.map(
      ({ path: at, before, after }) =>
        `  ${at || '""'}: ${short(before)} → ${after === undefined ? 'removed' : short(after)}`,
    ),
    ...unchanged.map(at => `  ${at || '""'}: unchanged`),
    ...skipped.map(({ path: at, reason }) => `  skipped ${at || '""'}: ${reason}`),
    ...(failure?.index === index
      ? ['  failed']
      : changes.length || unchanged.length || skipped.length
        ? []
        : ['  no change']),
  ])
  const references = referencedObjects.map(
    one => `refers to ${one.kind} ${one.namespace}/${one.name}, on the host ${one.hostNamespace}/${one.hostName}`,
  )
  return [...lines, ...references, ''].join('\n')
}
