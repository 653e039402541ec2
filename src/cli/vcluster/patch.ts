// `platform vcluster patch`: the object that the other side would get, before anything runs.

import { writeYaml } from '../../api/codec.ts'
import { dnsLabel } from '../../api/names.ts'
import type { Json, JsonObject } from '../../api/object.ts'
import { allOf, defineCommand, type Flags, type Io, UsageError } from '../../host/command.ts'
import type { Config } from '../../vcluster/config/config.ts'
import { configFlags, readConfig } from '../../vcluster/config/read.ts'
import type { Patch } from '../../vcluster/patch/patch.ts'
import { type Preview, previewToHost, previewToVirtual, whyNameless } from '../../vcluster/patch/preview.ts'
import { checkRoundTrip, type RoundTrip } from '../../vcluster/patch/round-trip.ts'
import { openSandbox, type Sandbox } from '../../vcluster/patch/sandbox.ts'
import { readObject } from '../read-object.ts'
import { diffOf } from './diff.ts'
import { withoutMarks } from './strip-sync-metadata.ts'

export const vclusterFlags = {
  ...configFlags,
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
    what: 'Namespace of virtual objects whose file names none.',
    check: dnsLabel,
  },
} as const satisfies Flags

export const vclusterPatch = defineCommand({
  words: ['vcluster', 'patch'],
  what: 'Print the Endpoints that the other side would get; 1: it would not be written, or does not come back.',
  examples: [
    {
      what: 'What the host would get',
      command: 'platform vcluster patch -f vcluster.yaml --name vc --namespace team --object endpoints.yaml',
    },
    {
      what: 'Only what the patches change',
      command: 'platform vcluster patch -f vcluster.yaml --name vc --namespace team --object endpoints.yaml -o diff',
    },
    {
      what: 'What would come back from the host',
      command: 'platform vcluster patch -f vcluster.yaml --name vc --namespace team --object host.yaml --reverse',
    },
  ],
  flags: {
    ...vclusterFlags,
    object: {
      type: 'text',
      value: 'FILE',
      what: 'The virtual Endpoints; with --reverse the one on the host.',
      required: true,
    },
    'host-object': { type: 'text', value: 'FILE', what: 'What is on the host by now.' },
    'virtual-object': { type: 'text', value: 'FILE', what: 'With --reverse: what is in the virtual cluster by now.' },
    reverse: { type: 'switch', what: 'From the host to the virtual cluster.' },
    'check-round-trip': { type: 'switch', what: 'Also check that reverseExpression undoes expression.' },
    output: {
      type: 'text',
      short: 'o',
      value: 'FORM',
      what: 'How to print it.',
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
    const nameless = flags.reverse ? whyNameless({ virtualObject: virtual, hostObject: object }, flags.name) : undefined
    if (nameless !== undefined) throw new UsageError([`${flags.object}: ${nameless}`])
    const sandbox = openSandbox({ workers: 1 })
    try {
      // Started before, so that the trace tells the time of the patches.
      await sandbox.evaluate({ expression: 'value', values: [0] })
      const options = { config, name: flags.name, namespace: flags.namespace, sandbox, now: io.now }
      const preview = flags.reverse
        ? await previewToVirtual({ virtualObject: virtual, hostObject: object }, options)
        : await previewToHost({ virtualObject: object, hostObject: host }, options)
      // What would not be written is not shown as if it would; a trace tells how far it came.
      if (preview.problem === undefined || flags.output === 'trace') io.out(show(preview, flags.output))
      for (const note of preview.notes) io.err(`platform: note: ${note}\n`)
      if (preview.problem !== undefined) io.err(`platform: ${preview.problem}\n`)
      const trips = flags['check-round-trip'] ? await roundTrips({ ...options, object }) : []
      for (const trip of trips) tell(trip, io)
      return preview.problem === undefined && trips.every(trip => !trip.broken.length) ? 0 : 1
    } finally {
      await sandbox.close()
    }
  },
})

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
    patches: config.sync.toHost.endpoints.patches as readonly Patch[],
    object,
    sandbox,
    context: { vcluster: { name, namespace, config }, virtualObject: object, hostObject: null },
    dns: { vcluster: name, namespace, clusterDomain },
  })
}

const MOST_SHOWN = 3

function tell({ index, path, held, refused, broken, skipped }: RoundTrip, io: Io): void {
  const where = `patch ${index} at ${path || '""'}`
  const all = held + broken.length
  const result = broken.length ? `${broken.length} of ${all} values do not come back` : `${held} values come back`
  const outcome =
    skipped === undefined ? `${result}${refused ? `, ${refused} are not taken` : ''}` : `not tried, it ${skipped}`
  io.err(`platform: round trip: ${where}: ${outcome}\n`)
  for (const one of broken.slice(0, MOST_SHOWN))
    io.err(`platform:   ${short(one.value)} → ${short(one.there)} → ${short(one.back)}\n`)
}

function short(value: Json): string {
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

function show(preview: Preview, output: string): string {
  if (output === 'json') return `${JSON.stringify(preview.object, undefined, 2)}\n`
  if (output === 'diff') return diffOf(writeYaml(withoutMarks(preview.plain)), writeYaml(withoutMarks(preview.object)))
  return output === 'trace' ? traceOf(preview) : writeYaml(preview.object)
}

function traceOf({ trace, referents, problem = '' }: Preview): string {
  const lines = trace.flatMap(({ index, path, changes, unchanged, skipped, ms }) => [
    `patch ${index} at ${path || '""'} (${ms.toFixed(1)} ms)`,
    ...changes.map(
      ({ path: at, before, after }) =>
        `  ${at || '""'}: ${short(before)} → ${after === undefined ? 'removed' : short(after)}`,
    ),
    ...unchanged.map(at => `  ${at || '""'}: unchanged`),
    ...skipped.map(({ path: at, reason }) => `  skipped ${at || '""'}: ${reason}`),
    ...(problem.startsWith(`PatchFailed: patch ${index} `)
      ? ['  failed']
      : changes.length || unchanged.length || skipped.length
        ? []
        : ['  nothing changes']),
  ])
  const brought = referents.map(
    one => `refers to ${one.kind} ${one.namespace}/${one.name}, on the host ${one.hostNamespace}/${one.hostName}`,
  )
  return [...lines, ...brought, ''].join('\n')
}
