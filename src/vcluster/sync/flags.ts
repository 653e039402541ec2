// Flags of `platform vcluster sync`.

import type { Logger } from 'pino'
import { dnsLabel } from '../../api/names.ts'
import type { Flags, Given, Io } from '../../host/command.ts'
import { readDuration } from '../../host/duration.ts'
import { quoted } from '../../host/sanitize.ts'
import { otlpFlag } from '../../serving/tracing/settings.ts'
import type { Tracing } from '../../serving/tracing/tracing.ts'
import type { OpenedCluster } from '../../transport/open-cluster.ts'
import type { Config } from '../config/config.ts'
import { configFlags } from '../config/read.ts'
import type { OpenSyncOptions } from './sync.ts'

/** Returns seconds. Also accepts a bare number, because older versions took only seconds. */
export const timeoutOf = (text: string): number =>
  /^\d{1,6}$/.test(text) ? Number(text) : readDuration('--timeout', text)

/** The longest timer of Node, in seconds. */
const maxSeconds = 999_999

export function timeoutProblem(text: string): string {
  try {
    return timeoutOf(text) > maxSeconds ? `--timeout: ${quoted(text)} must be at most 11d` : ''
  } catch {
    return `--timeout: ${quoted(text)} must be a duration such as 90s, 15m or 2h`
  }
}

export const flags = {
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
  'virtual-kubeconfig': { type: 'text', value: 'FILE', what: 'Kubeconfig of the virtual cluster.', required: true },
  'virtual-context': { type: 'text', value: 'NAME', what: 'Context in that kubeconfig.' },
  'host-kubeconfig': {
    type: 'text',
    value: 'FILE',
    what: 'Kubeconfig of the host. Default: the cluster this runs in.',
  },
  'host-context': { type: 'text', value: 'NAME', what: 'Context in that kubeconfig.' },
  'allow-exec': {
    type: 'list',
    value: 'SIDE',
    what: 'Allow exec plugins in the kubeconfig of this side. Always allowed for the host.',
    choices: ['virtual'],
  },
  'allow-files': {
    type: 'list',
    value: 'SIDE',
    what: 'Allow the kubeconfig of this side to reference local files. Always allowed for the host.',
    choices: ['virtual'],
  },
  once: { type: 'switch', what: 'Sync once, print a report and exit: exit code 1 if an object could not be synced.' },
  output: {
    type: 'text',
    short: 'o',
    value: 'FORMAT',
    what: 'Format of the report of --once. Default: a table.',
    choices: ['json'],
  },
  'dry-run': { type: 'switch', what: 'Print the writes of one sync without performing them.' },
  timeout: {
    type: 'text',
    value: 'TIME',
    what: 'Time limit of --once and --dry-run, such as 90s or 15m. A bare number is seconds.',
    default: '60s',
  },
  'sync-references': {
    type: 'list',
    value: 'KIND',
    what: 'Also sync referenced objects of this kind to the host, such as Ingress.networking.k8s.io.',
  },
  'import-allow': {
    type: 'list',
    value: 'KIND[/NAME]',
    what: 'Objects of the host that references may import, such as Secret/shared-ca or Secret/shared-*.',
  },
  'leader-elect': { type: 'switch', what: 'Sync only while holding a Lease on the host, for several replicas.' },
  listen: {
    type: 'text',
    value: 'HOST:PORT',
    what: 'Address for /livez, /readyz and /metrics, or off.',
    default: 'off',
  },
  'log-level': {
    type: 'text',
    value: 'LEVEL',
    what: 'Log level.',
    choices: ['debug', 'info', 'warn', 'error'],
    default: 'info',
  },
  ...otlpFlag,
} as const satisfies Flags

type SyncFlags = Given<typeof flags>['flags']

export type Opened = {
  readonly flags: SyncFlags
  readonly config: Config
  readonly virtual: OpenedCluster
  readonly host: OpenedCluster
  readonly io: Io
  readonly log: Logger
  /** Absent: tracing is off. */
  readonly tracing: Tracing | undefined
}

/** Builds the options of a syncer that runs until the signal aborts. */
export type OptionsFor = (config: Config, signal: AbortSignal) => OpenSyncOptions
