// Reads the settings of the server from flags, environment variables and the configuration file (D1).

import { readFileSync } from 'node:fs'
import { didYouMean } from '../api/did-you-mean.ts'
import { isObject, type Json } from '../api/object.ts'
import { type Flag, UsageError } from '../host/command.ts'
import { fileProblem } from '../host/fs-errors.ts'
import { readTokens } from '../host/read-flags.ts'
import { isLoopback } from '../serving/address.ts'
import { toBoolean, toList, toNumber } from './setting-values.ts'
import { type Row, table } from './settings-table.ts'

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

/** Without the password of a URL. */
const shown = (value: unknown) => {
  const text = JSON.stringify(value).replace(/\/\/[^/"]*@/g, '//…@')
  return text.length > 66 ? `a value of ${text.length} characters` : text
}

function checkTogether(settings: Settings, problems: string[]): void {
  if (Boolean(settings.tlsCert) !== Boolean(settings.tlsKey)) problems.push('tlsCert and tlsKey must be set together')
  if (settings.tlsCa && !settings.tlsCert) problems.push('tlsCa requires tlsCert')
  if (settings.storage === 'etcd' && settings['etcd.endpoints'].length === 0)
    problems.push('storage etcd requires etcd.endpoints (--etcd-endpoints URL, once per member)')
  if (settings.storage !== 'etcd' && settings['etcd.endpoints'].length > 0)
    problems.push('etcd.endpoints requires storage etcd (--storage etcd)')
  const open = settings['etcd.endpoints'].find(
    url => url.startsWith('http:') && !isLoopback(url.slice('http://'.length)),
  )
  if (open !== undefined && !settings.insecureHttp)
    problems.push(
      `etcd.endpoints: ${open} is not a loopback address; over plain HTTP others could change every permission. Use https, or set --insecure-http`,
    )
  if (Boolean(settings['etcd.cert']) !== Boolean(settings['etcd.key']))
    problems.push('etcd.cert and etcd.key must be set together')
  if (settings.https === 'off' && settings.http === 'off')
    problems.push('https and http are both off; enable at least one')
  if (settings.http !== 'off' && !isLoopback(settings.http) && !settings.insecureHttp)
    problems.push(
      `http: ${settings.http} is not a loopback address; plain HTTP would expose every key to the network. Use https, or set --insecure-http`,
    )
}
