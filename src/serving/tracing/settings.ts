// Reads the settings of tracing: the endpoint, and the standard environment variables of OpenTelemetry.

import { type Flags, UsageError } from '../../host/command.ts'
import { quoted } from '../../host/sanitize.ts'
import type { SamplingSettings } from './sampling.ts'

export type TracingSettings = {
  /** The URL that receives the spans. */
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  /** Attributes of this program, with service.name. */
  readonly resource: { readonly [name: string]: string }
  readonly sampling: SamplingSettings
}

/** Of programs without a table of settings. */
export const otlpFlag = {
  'otlp-endpoint': {
    type: 'text',
    value: 'URL',
    what: 'OpenTelemetry collector that receives traces over OTLP/HTTP. Default: OTEL_EXPORTER_OTLP_ENDPOINT, else no traces.',
  },
} as const satisfies Flags

type Env = { readonly [name: string]: string | undefined }

const samplers: { readonly [name: string]: (argument: number) => SamplingSettings } = {
  always_on: () => ({ ratio: 1, isParentBased: false }),
  always_off: () => ({ ratio: 0, isParentBased: false }),
  traceidratio: ratio => ({ ratio, isParentBased: false }),
  parentbased_always_on: () => ({ ratio: 1, isParentBased: true }),
  parentbased_always_off: () => ({ ratio: 0, isParentBased: true }),
  parentbased_traceidratio: ratio => ({ ratio, isParentBased: true }),
}

export type TracingInput = {
  /** The base URL from the setting of the program; empty: only the environment decides. */
  readonly endpoint: string
  readonly env: Env
  /** The default of service.name. */
  readonly service: string
  readonly version: string
}

/** Returns undefined if tracing is off. Throws UsageError with all problems. No problem repeats a value that may be secret. */
export function readTracingSettings({ endpoint, env, service, version }: TracingInput): TracingSettings | undefined {
  const url = urlOf(endpoint, env)
  if (url === undefined || env['OTEL_SDK_DISABLED'] === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none')
    return undefined
  const problems: string[] = []
  const problem = endpointProblem(url.value)
  if (problem) problems.push(`${url.from} must be ${problem}`)
  const protocol = env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] || env['OTEL_EXPORTER_OTLP_PROTOCOL']
  if (protocol && !protocol.startsWith('http/'))
    problems.push(
      `OTEL_EXPORTER_OTLP_PROTOCOL: ${quoted(protocol)} is not supported: use http/json, usually on port 4318`,
    )
  const headersFrom = env['OTEL_EXPORTER_OTLP_TRACES_HEADERS']
    ? 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'
    : 'OTEL_EXPORTER_OTLP_HEADERS'
  const headers = pairsIn(headersFrom, env, problems)
  const attributes = pairsIn('OTEL_RESOURCE_ATTRIBUTES', env, problems)
  const sampling = samplingOf(env, problems)
  if (problems.length) throw new UsageError(problems)
  const name = env['OTEL_SERVICE_NAME'] || attributes['service.name'] || service
  const resource = { 'service.version': version, ...attributes, 'service.name': name }
  return { url: url.value, headers, resource, sampling }
}

/** The problem of an endpoint, as the end of "must be …"; undefined: it is valid. */
export function endpointProblem(value: string): string | undefined {
  const right = 'an http or https URL without a user, a password or a query, such as http://127.0.0.1:4318'
  if (!URL.canParse(value)) return right
  const { protocol, username, password, search, hash } = new URL(value)
  return /^https?:$/.test(protocol) && !username && !password && !search && !hash ? undefined : right
}

type Found = { readonly value: string; readonly from: string }

function urlOf(endpoint: string, env: Env): Found | undefined {
  const traces = env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']
  const general = env['OTEL_EXPORTER_OTLP_ENDPOINT']
  if (endpoint) return { value: withPath(endpoint), from: '--otlp-endpoint' }
  if (traces) return { value: traces, from: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT' }
  return general ? { value: withPath(general), from: 'OTEL_EXPORTER_OTLP_ENDPOINT' } : undefined
}

const withPath = (base: string) => `${base.replace(/\/+$/, '')}/v1/traces`

const token = /^[-!#$%&'*+.^_`|~0-9A-Za-z]+$/

/** Pairs such as `a=1,b=2`, with percent encoding. */
function pairsIn(variable: string, env: Env, problems: string[]): { [name: string]: string } {
  const found: { [name: string]: string } = {}
  for (const [index, pair] of (env[variable] ?? '').split(',').entries()) {
    if (pair.trim() === '') continue
    const at = pair.indexOf('=')
    const name = decoded(pair.slice(0, Math.max(at, 0)).trim())
    const value = decoded(pair.slice(at + 1).trim())
    if (name !== undefined && value !== undefined && token.test(name) && !/[\x00-\x1f\x7f]/.test(value))
      found[name] = value
    else problems.push(`${variable}: entry ${index + 1} must be NAME=VALUE, with special characters as %XX`)
  }
  return found
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function samplingOf(env: Env, problems: string[]): SamplingSettings {
  const name = env['OTEL_TRACES_SAMPLER'] || 'parentbased_always_on'
  const argument = env['OTEL_TRACES_SAMPLER_ARG'] || '1'
  const sampler = Object.hasOwn(samplers, name) ? samplers[name] : undefined
  if (!sampler) problems.push(`OTEL_TRACES_SAMPLER: ${quoted(name)} must be one of ${Object.keys(samplers).join(', ')}`)
  const ratio = /^(0|1|0?\.\d+|[01]\.\d+)$/.test(argument) ? Number(argument) : Number.NaN
  const usesRatio = name.endsWith('traceidratio')
  if (usesRatio && !(ratio >= 0 && ratio <= 1))
    problems.push(`OTEL_TRACES_SAMPLER_ARG: ${quoted(argument)} must be a number from 0 to 1`)
  return sampler?.(ratio) ?? { ratio: 1, isParentBased: true }
}
