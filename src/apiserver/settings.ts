// Defines the settings of the server: each has a flag, an environment variable and a key in the configuration file (D1).

import { readFileSync } from 'node:fs'
import { didYouMean } from '../api/did-you-mean.ts'
import { isReservedName } from '../api/names.ts'
import { isObject, type Json } from '../api/object.ts'
import { type Flag, UsageError } from '../host/command.ts'
import { fileProblem } from '../host/fs-errors.ts'
import { readTokens } from '../host/read-flags.ts'
import { isLoopback } from '../serving/address.ts'
import { networkProblem } from '../serving/client-address.ts'
import { engineNames } from '../storage/index.ts'
import { toBoolean, toList, toNumber } from './setting-values.ts'

type Row = {
  readonly default: string | boolean | number | readonly string[]
  readonly what: string
  readonly check?: (value: never) => string | undefined
}

const address = (value: string) =>
  value === 'off' ||
  /^(\[[0-9a-fA-F:]+\]|[^:]+):(\d{1,4}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])$/.test(value)
    ? undefined
    : 'HOST:PORT or off'
const positive = (value: number) => (value > 0 ? undefined : 'a whole number above 0')

/** The key is used in the file. The flag is --key with dashes, the variable PLATFORM_KEY with underscores. */
export const table = {
  https: { default: '127.0.0.1:8443', what: 'Address of the HTTPS listener: HOST:PORT or off.', check: address },
  http: { default: '127.0.0.1:8080', what: 'Address of the plain HTTP listener: HOST:PORT or off.', check: address },
  insecureHttp: { default: false, what: 'Allow plain HTTP on an address that is not loopback.' },
  data: { default: 'data', what: 'Directory for the store and the key files.' },
  storage: {
    default: 'sqlite',
    what: `Storage engine: ${engineNames.join(' or ')}.`,
    check: (value: string) => (engineNames.includes(value) ? undefined : engineNames.join(' or ')),
  },
  masterKey: {
    default: '',
    what: 'Key ring that encrypts secrets: a file or env:NAME. Default: master.key in the data directory.',
  },
  tlsCert: {
    default: '',
    what: 'Certificate file for HTTPS, reloaded when it changes. Default: issued by the built-in CA.',
  },
  tlsKey: { default: '', what: 'Private key file for the HTTPS certificate.' },
  tlsCa: {
    default: '',
    what: 'File with the CA that signed tlsCert, for clients. Default: the CA in the chain of tlsCert.',
  },
  tlsSan: {
    default: [] as readonly string[],
    what: 'Additional names and addresses for the certificate of the built-in CA.',
  },
  logLevel: {
    default: 'info',
    what: 'Log level: debug, info, warn or error.',
    check: (value: string) =>
      ['debug', 'info', 'warn', 'error'].includes(value) ? undefined : 'debug, info, warn or error',
  },
  shutdownDelay: { default: 1, what: 'Seconds between failing /readyz and closing, for load balancers to notice.' },
  'auth.maxKeyTTL': {
    default: 0,
    what: 'Maximum lifetime of an access key in seconds; 0: unlimited. Also applies to existing keys.',
  },
  'auth.config': {
    default: '',
    what: 'AuthConfig file with the issuers whose tokens machines sign in with. Default: access keys only.',
  },
  'auth.requireUsers': {
    default: false,
    what: 'Accept only keys of users that have an enabled User object. The user admin needs none until one exists.',
  },
  'auth.adminGroups': {
    default: [] as readonly string[],
    what: 'Groups whose members are administrators, with the prefix of their provider.',
    check: (value: readonly string[]) =>
      value.some(group => isReservedName(group) || group.includes(','))
        ? 'groups without commas and without the prefixes system: and platform:'
        : undefined,
  },
  'auth.pastedKeys': {
    default: true,
    what: 'Allow people to sign in to the web pages with an access key.',
  },
  baseUrl: {
    default: '',
    what: 'Public URL of this server, which is the issuer of tokens. Default: the address of the HTTPS listener.',
    check: (value: string) =>
      value === '' || /^https:\/\/[^/?#\s]+(\/[^?#\s]*[^/?#\s])?$/.test(value)
        ? undefined
        : 'an https URL without a trailing slash',
  },
  'token.maxTTL': {
    default: 86400,
    what: 'Maximum lifetime of a direct-cluster token in seconds.',
    check: (value: number) => (value >= 60 && value <= 86400 ? undefined : 'a number of seconds from 60 to 86400'),
  },
  'gateway.config': {
    default: '',
    what: 'GatewayConfig file with the clusters of the embedded gateway. Default: no embedded gateway.',
  },
  'secrets.removeStale': {
    default: false,
    what: 'Remove the data of a project secret if its source was deleted, or if its owner may no longer read the source.',
  },
  'secrets.versions': { default: 20, what: 'Number of earlier versions of a secret to keep.' },
  'secrets.versionDays': {
    default: 90,
    what: 'Days to keep an earlier version of a secret.',
    check: positive,
  },
  'limits.reads': { default: 400, what: 'Maximum number of concurrent reads; more get a 429.', check: positive },
  'limits.writes': { default: 400, what: 'Maximum number of concurrent writes.', check: positive },
  'limits.watches': { default: 10000, what: 'Maximum number of open watches.', check: positive },
  'limits.share': {
    default: 80,
    what: 'Percentage of these limits that one identity may use.',
    check: (value: number) => (value > 0 && value <= 100 ? undefined : 'a percentage from 1 to 100'),
  },
  'limits.rate': { default: 0, what: 'Maximum requests per second from one identity; 0: unlimited.' },
  'limits.burst': {
    default: 1000,
    what: 'Maximum burst of requests from one identity. Applies only if limits.rate is set.',
    check: positive,
  },
  'limits.previews': { default: 60, what: 'Maximum previews of patches by one identity in a minute; 0: no previews.' },
  'limits.unknownKeys': {
    default: 20,
    what: 'Unknown keys from one address in five minutes before it gets a 429; 0: unlimited.',
  },
  'limits.auth': {
    default: 60,
    what: 'Maximum sign-in requests from one address in a minute; more get a 429.',
    check: positive,
  },
  'limits.authTotal': {
    default: 1200,
    what: 'Maximum sign-in requests from all addresses in a minute.',
    check: positive,
  },
  trustedProxy: {
    default: [] as readonly string[],
    what: 'Addresses or networks of trusted proxies, whose X-Forwarded-For header is used.',
    check: (value: readonly string[]) =>
      value.some(networkProblem) ? 'addresses or networks such as 10.0.0.0/8' : undefined,
  },
  'audit.log': {
    default: 'audit.log',
    what: 'Target of audit events: a file (relative to the data directory), - for stdout, or off.',
  },
  'audit.policy': { default: '', what: 'File with an audit.k8s.io/v1 Policy. Default: writes, and reads of secrets.' },
  'audit.maxSize': {
    default: 100,
    what: 'Maximum size of the audit log in MiB before it is rotated.',
    check: positive,
  },
  'audit.maxFiles': { default: 10, what: 'Number of rotated audit logs to keep; 0: all.' },
  'audit.maxAge': { default: 0, what: 'Days to keep rotated audit logs; 0: forever.' },
  'audit.refuseWrites': { default: false, what: 'Reject writes while the audit log is not writable.' },
} as const satisfies { readonly [key: string]: Row }

type Key = keyof typeof table
type Widened<T> = T extends string
  ? string
  : T extends boolean
    ? boolean
    : T extends number
      ? number
      : readonly string[]
export type Settings = { readonly [K in Key]: Widened<(typeof table)[K]['default']> }

/** Lists all problems: each has the setting, its source, and a valid value. */
export class SettingsError extends UsageError {}

export const flagOf = (key: string) =>
  key.replace(/\.|[A-Z]+(?![a-z])|[A-Z]/g, part => `-${part === '.' ? '' : part.toLowerCase()}`)
export const variableOf = (key: string) => `PLATFORM_${flagOf(key).replaceAll('-', '_').toUpperCase()}`

type Found = { readonly value: unknown; readonly from: string }

export async function readSettings(
  args: readonly string[],
  env: { readonly [name: string]: string | undefined },
): Promise<Settings> {
  const problems: string[] = []
  const flags = fromFlags(args, problems)
  const file = flags.config ?? (env['PLATFORM_CONFIG'] || undefined)
  const inFile = typeof file === 'string' ? await fromFile(file, problems) : {}
  const settings = Object.fromEntries(
    (Object.keys(table) as Key[]).map(key => {
      const flag = flags[flagOf(key)]
      // An empty variable counts as unset.
      const variable = env[variableOf(key)] || undefined
      const found: Found | undefined =
        flag !== undefined
          ? { value: flag, from: `--${flagOf(key)}` }
          : variable !== undefined
            ? { value: variable, from: variableOf(key) }
            : inFile[key] !== undefined
              ? { value: inFile[key], from: `${file}: ${key}` }
              : undefined
      return [key, found ? convert(key, found, problems) : table[key].default]
    }),
  ) as unknown as Settings
  checkTogether(settings, problems)
  if (problems.length) throw new SettingsError(problems)
  return settings
}

const isEmpty = ([, values]: readonly [string, readonly string[]]) => values.includes('')

/** Parses the flags as strings. Reports errors like other commands. */
function fromFlags(args: readonly string[], problems: string[]): { readonly [flag: string]: string | string[] } {
  const rows = Object.entries(table).map(([key, row]): [string, Flag] => {
    const isSwitch = typeof row.default === 'boolean'
    return [flagOf(key), isSwitch ? { type: 'switch', what: '' } : { type: 'text', value: 'VALUE', what: '' }]
  })
  const flags = { ...Object.fromEntries(rows), config: { type: 'text', value: 'FILE', what: '' } } as const
  const { read, words } = readTokens(args, flags, problems)
  // The message does not repeat the argument, which may be a secret meant for stdin.
  for (const word of words) problems.push(`unexpected argument of ${word.length} characters; only flags are allowed`)
  const [filled, empty] = [[...read].filter(one => !isEmpty(one)), [...read].filter(isEmpty)]
  for (const [flag] of empty) problems.push(`--${flag} requires a value`)
  if (problems.length) problems.push('--help lists the flags')
  const isList = new Set(
    Object.entries(table).flatMap(([key, row]) => (Array.isArray(row.default) ? [flagOf(key)] : [])),
  )
  return Object.fromEntries(filled.map(([flag, values]) => [flag, isList.has(flag) ? values : (values.at(-1) ?? '')]))
}

async function fromFile(file: string, problems: string[]): Promise<{ readonly [key: string]: unknown }> {
  try {
    const { decodeYamlFile } = await import('../api/yaml-codec.ts')
    const { value, duplicates } = decodeYamlFile(readFileSync(file))
    problems.push(...duplicates.map(text => `${file}: ${text}`))
    if (!isObject(value) || value.apiVersion !== 'config.platform.sh/v1' || value.kind !== 'ServerConfig')
      throw new Error('must have apiVersion: config.platform.sh/v1 and kind: ServerConfig')
    const { apiVersion: _, kind: __, ...rest } = value
    const flat = flatten(rest)
    for (const key of Object.keys(flat))
      if (!Object.hasOwn(table, key)) problems.push(`${file}: unknown setting ${key}${hint(key)}`)
    return flat
  } catch (error) {
    problems.push(fileProblem(file, error))
    return {}
  }
}

const hint = (key: string) => didYouMean(key, Object.keys(table)) || `; settings are ${Object.keys(table).join(', ')}`

function flatten(value: { readonly [key: string]: Json }, prefix = ''): { [key: string]: Json } {
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) =>
      isObject(item) ? Object.entries(flatten(item, `${prefix}${key}.`)) : [[`${prefix}${key}`, item]],
    ),
  )
}

function convert(key: Key, { value, from }: Found, problems: string[]): unknown {
  const row: Row = table[key]
  const wanted = Array.isArray(row.default) ? 'list' : typeof row.default
  const converted =
    wanted === 'number'
      ? toNumber(value)
      : wanted === 'boolean'
        ? toBoolean(value)
        : wanted === 'list'
          ? toList(value)
          : typeof value === 'string'
            ? value
            : undefined
  if (converted === undefined) {
    problems.push(`${from}: ${shown(value)} is not a ${wanted}`)
    return row.default
  }
  if (converted === '' && row.default !== '') problems.push(`${from} requires a value`)
  const right = converted === '' ? undefined : row.check?.(converted as never)
  if (right) problems.push(`${from}: ${shown(converted)} must be ${right}`)
  return converted
}

const shown = (value: unknown) => {
  const text = JSON.stringify(value)
  return text.length > 66 ? `a value of ${text.length} characters` : text
}

function checkTogether(settings: Settings, problems: string[]): void {
  if (Boolean(settings.tlsCert) !== Boolean(settings.tlsKey)) problems.push('tlsCert and tlsKey must be set together')
  if (settings.tlsCa && !settings.tlsCert) problems.push('tlsCa requires tlsCert')
  if (settings.https === 'off' && settings.http === 'off')
    problems.push('https and http are both off; enable at least one')
  if (settings.http !== 'off' && !isLoopback(settings.http) && !settings.insecureHttp)
    problems.push(
      `http: ${settings.http} is not a loopback address; plain HTTP would expose every key to the network. Use https, or set --insecure-http`,
    )
}
