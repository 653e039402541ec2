// The flags of `platform vcluster sync`, and what it has opened by them.

import { dnsLabel } from '../../api/names.ts'
import type { Flags, Given, Io } from '../../host/command.ts'
import { readDuration } from '../../host/duration.ts'
import { quoted } from '../../host/sanitize.ts'
import type { Reached } from '../../transport/open-cluster.ts'
import type { Config } from '../config/config.ts'
import { configFlags } from '../config/read.ts'
import type { OpenSyncOptions } from './sync.ts'

/** Seconds. It was seconds alone before other commands had durations, and scripts say so. */
export const timeoutOf = (text: string): number =>
  /^\d{1,6}$/.test(text) ? Number(text) : readDuration('--timeout', text)

/** As long as a timer of Node can be. */
const longest = 999_999

export function timeoutProblem(text: string): string {
  try {
    return timeoutOf(text) > longest ? `--timeout: ${quoted(text)} must be at most 11d` : ''
  } catch {
    return `--timeout: ${quoted(text)} must be a time such as 90s, 15m or 2h`
  }
}

export const flags = {
  ...configFlags,
  name: { type: 'text', value: 'VC', what: 'Name of the virtual cluster.', required: true, check: dnsLabel },
  namespace: {
    type: 'text',
    short: 'n',
    value: 'NS',
    what: 'Where it lives on the host.',
    required: true,
    check: dnsLabel,
  },
  'virtual-kubeconfig': { type: 'text', value: 'FILE', what: 'Way into the virtual cluster.', required: true },
  'virtual-context': { type: 'text', value: 'NAME', what: 'Context of that file.' },
  'host-kubeconfig': { type: 'text', value: 'FILE', what: 'Way into the host; default: the cluster this runs in.' },
  'host-context': { type: 'text', value: 'NAME', what: 'Context of that file.' },
  'allow-exec': {
    type: 'list',
    value: 'SIDE',
    what: 'Let the kubeconfig of this side run exec plugins here: virtual. The host side always may.',
    choices: ['virtual'],
  },
  'allow-files': {
    type: 'list',
    value: 'SIDE',
    what: 'Let the kubeconfig of this side name files of this machine: virtual. The host side always may.',
    choices: ['virtual'],
  },
  once: { type: 'switch', what: 'Bring everything in order once, and end; 1: something could not be.' },
  'dry-run': { type: 'switch', what: 'Print what would be written, once, and write nothing.' },
  timeout: {
    type: 'text',
    value: 'TIME',
    what: 'How long --once and --dry-run try, such as 90s or 15m; a bare number is seconds.',
    default: '60s',
  },
  'import-allow': { type: 'list', value: 'Secret[/NAME]', what: 'Secrets of the host that references may import.' },
  'leader-elect': { type: 'switch', what: 'Work only while holding a Lease on the host, for several replicas.' },
  listen: {
    type: 'text',
    value: 'HOST:PORT',
    what: 'Where to serve /livez, /readyz and /metrics, or off.',
    default: 'off',
  },
  'log-level': {
    type: 'text',
    value: 'LEVEL',
    what: 'How much to log.',
    choices: ['debug', 'info', 'warn', 'error'],
    default: 'info',
  },
} as const satisfies Flags

type Asked = Given<typeof flags>['flags']

export type Opened = {
  readonly asked: Asked
  readonly config: Config
  readonly virtual: Reached
  readonly host: Reached
  readonly io: Io
}

/** Everything a syncer needs, for a configuration and until a signal ends it. */
export type OptionsFor = (config: Config, signal: AbortSignal) => OpenSyncOptions
