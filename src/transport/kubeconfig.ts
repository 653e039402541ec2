// Reads one context of a kubeconfig, and reports all of its problems together.

import { DecodeError } from '../api/json-reader.ts'
import { isObject, type Json, type JsonObject } from '../api/object.ts'
import { decodeYaml } from '../api/yaml-codec.ts'
import type { Access, ExecPlugin, Material } from './cluster-config.ts'
import { type TenantRules, tenantProblems } from './tenant-kubeconfig.ts'

/** The problems of a kubeconfig. Never contains a token or a key. */
export class KubeconfigError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(problems.join('; '))
    this.name = 'KubeconfigError'
    this.problems = problems
  }
}

export type KubeconfigOptions = {
  /** Used in messages. Files that it names are relative to `directory`. */
  readonly file: string
  readonly directory: string
  /** Default: the current context of the file. */
  readonly context?: string | undefined
  /** Set if a tenant supplied the file. Absent: the file belongs to the operator and is trusted. */
  readonly tenant?: TenantRules | undefined
}

const maxBytes = 3 * 1024 * 1024

/** Throws KubeconfigError. */
export function readKubeconfig(bytes: Uint8Array, options: KubeconfigOptions): Access {
  const { file } = options
  const config = parse(bytes, file)
  const problems: string[] = []
  const name = options.context ?? textOf(config['current-context'])
  const fail = (): never => {
    throw new KubeconfigError(problems.map(problem => `${file}: ${problem}`))
  }
  if (!name) {
    problems.push(`no context is selected: set current-context, or choose one of ${namesIn(config['contexts'])}`)
    return fail()
  }
  const context = entry(config['contexts'], name, 'context')
  if (!context) {
    problems.push(`unknown context "${name}"; known contexts: ${namesIn(config['contexts'])}`)
    return fail()
  }
  const find = (list: 'clusters' | 'users', what: 'cluster' | 'user') => {
    const wanted = textOf(context[what])
    if (!wanted && what === 'user') return {} // anonymous
    const found = entry(config[list], wanted, what)
    if (!found)
      problems.push(`the context "${name}" refers to the ${what} "${wanted}", which does not exist in this file`)
    return found ?? {}
  }
  const [cluster, user] = [find('clusters', 'cluster'), find('users', 'user')]
  if (problems.length) return fail()
  if (options.tenant) {
    const [clusterName, userName] = [textOf(context['cluster']), textOf(context['user'])]
    problems.push(...tenantProblems({ clusterName, cluster, userName, user }, options.tenant))
    if (problems.length) return fail()
  }
  const access = accessOf({ context, cluster, user, directory: options.directory, problems })
  return problems.length || !access ? fail() : access
}

/** Whether the file is something else, such as the configuration of a virtual cluster. */
const isOther = (value: JsonObject) =>
  Object.keys(value).length > 0 &&
  ['kind', 'clusters', 'contexts', 'users', 'current-context'].every(field => value[field] === undefined)

function parse(bytes: Uint8Array, file: string): JsonObject {
  if (bytes.length > maxBytes) throw new KubeconfigError([`${file} is larger than ${maxBytes} bytes`])
  try {
    const { value } = decodeYaml(bytes)
    if (isObject(value) && isOther(value))
      throw new KubeconfigError([`${file} is not a kubeconfig: it has neither clusters nor contexts nor users`])
    if (isObject(value) && (value['kind'] ?? 'Config') === 'Config') return value
  } catch (error) {
    if (error instanceof DecodeError) throw new KubeconfigError([`${file} is not a kubeconfig: ${error.message}`])
    throw error
  }
  throw new KubeconfigError([`${file} is not a kubeconfig: it must be a map with kind Config`])
}

const listOf = (list: Json | undefined): JsonObject[] => (Array.isArray(list) ? list.filter(isObject) : [])
const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')
const namesIn = (list: Json | undefined): string =>
  listOf(list)
    .map(({ name }) => JSON.stringify(name))
    .join(', ') || 'none'

function entry(list: Json | undefined, name: string, key: string): JsonObject | undefined {
  const found = listOf(list).find(one => one['name'] === name)?.[key]
  return isObject(found) ? found : undefined
}

type Parts = {
  readonly context: JsonObject
  readonly cluster: JsonObject
  readonly user: JsonObject
  readonly directory: string
  readonly problems: string[]
}

function accessOf({ context, cluster, user, directory, problems }: Parts): Access | undefined {
  const server = urlOf(textOf(cluster['server']), problems)
  const insecure = cluster['insecure-skip-tls-verify'] === true
  const material = (from: JsonObject, key: string) => materialOf(from, key, directory, problems)
  const ca = material(cluster, 'certificate-authority')
  if (insecure && ca) problems.push('insecure-skip-tls-verify and certificate-authority cannot be combined')
  const [certificate, key] = [material(user, 'client-certificate'), material(user, 'client-key')]
  if (Boolean(certificate) !== Boolean(key)) problems.push('client-certificate and client-key must be set together')
  const proxy = textOf(cluster['proxy-url'])
  if (proxy && !/^https?:\/\//.test(proxy)) problems.push('proxy-url must start with http:// or https://')
  if (user['auth-provider'])
    problems.push('auth-provider is no longer supported, as in kubectl: use an exec plugin instead')
  const exec = isObject(user['exec']) ? execOf(user['exec'], directory, problems) : undefined
  const tokenFile = textOf(user['tokenFile'])
  if (!server) return undefined
  return {
    server,
    insecure,
    namespace: textOf(context['namespace']) || 'default',
    ...(ca ? { ca } : {}),
    ...(certificate && key ? { certificate, key } : {}),
    ...optional('serverName', textOf(cluster['tls-server-name'])),
    ...optional('proxy', proxy),
    ...(exec ? { exec } : {}),
    // As in kubectl, the file takes precedence if both are set.
    ...(tokenFile ? { tokenFile: resolved(directory, tokenFile) } : optional('token', textOf(user['token']))),
    ...optional('username', textOf(user['username'])),
    ...optional('password', textOf(user['password'])),
  }
}

const optional = <K extends string>(key: K, value: string) =>
  (value ? { [key]: value } : {}) as { readonly [key in K]?: string }

function urlOf(text: string, problems: string[]): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && /^https?:$/.test(url.protocol) && !url.search && !url.hash) return text.replace(/\/+$/, '')
  problems.push('the cluster requires a server URL such as https://host:6443')
  return undefined
}

/** As in kubectl, inline data takes precedence if both are set. */
function materialOf(from: JsonObject, key: string, directory: string, problems: string[]): Material | undefined {
  const [data, file] = [textOf(from[`${key}-data`]), textOf(from[key])]
  if (!data) return file ? { file: resolved(directory, file) } : undefined
  const text = Buffer.from(data, 'base64').toString()
  if (text.includes('-----BEGIN')) return { text }
  problems.push(`${key}-data must be base64-encoded PEM`)
  return undefined
}

function execOf(exec: JsonObject, directory: string, problems: string[]): ExecPlugin | undefined {
  const { command, args, env, apiVersion, installHint, provideClusterInfo } = exec
  if (apiVersion !== 'client.authentication.k8s.io/v1' && apiVersion !== 'client.authentication.k8s.io/v1beta1')
    problems.push('exec.apiVersion must be client.authentication.k8s.io/v1 or v1beta1')
  if (typeof command !== 'string' || !command) problems.push('exec.command is missing')
  if (args && !(Array.isArray(args) && args.every(one => typeof one === 'string')))
    problems.push('exec.args must be a list of strings')
  if (exec['interactiveMode'] === 'Always')
    problems.push(
      'exec.interactiveMode Always requires a terminal, which is not available here: use an exec plugin that does not prompt',
    )
  const hasPath = typeof command === 'string' && command.includes('/')
  return {
    apiVersion: textOf(apiVersion),
    command: hasPath ? resolved(directory, command) : textOf(command),
    args: (Array.isArray(args) ? args : []) as string[],
    env: Object.fromEntries(listOf(env).map(one => [textOf(one['name']), textOf(one['value'])])),
    installHint: textOf(installHint),
    provideClusterInfo: provideClusterInfo === true,
  }
}

const resolved = (directory: string, path: string) => (path.startsWith('/') ? path : `${directory}/${path}`)
