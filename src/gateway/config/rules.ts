// The rules of a gateway.yaml beyond its schema: unique names, spaces in known clusters, one route to each target. Pure.

import type { Finding } from '../../api/config-shape.ts'
import { didYouMean } from '../../api/did-you-mean.ts'
import { dnsLabel, isTargetName } from '../../api/names.ts'
import type { At } from '../../api/yaml-source.ts'
import type { GatewayConfig, ReachedBy } from './schema.ts'

const address = /^(\[[0-9a-fA-F:]+\]|[^:\s]+):(\d{1,4}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])$/
const https = /^https:\/\/[^/?#\s]+(\/[^?#\s]*[^/?#\s])?$/

type WithUndefined<List> = List extends readonly (infer One)[] ? readonly (One | undefined)[] : never

/** A configuration without its parts of the wrong type. Missing parts were reported already. */
export type PartialConfig = {
  readonly [key in keyof GatewayConfig]: key extends 'clusters' | 'virtualClusters' | 'spaces'
    ? WithUndefined<GatewayConfig[key]>
    : GatewayConfig[key]
}

export function checkRules(config: PartialConfig): Finding[] {
  return [...checkServer(config), ...checkTargets(config), ...checkIdentity(config), ...checkAgent(config)]
}

function checkServer({ listen, tls, issuer, service, status, limits }: PartialConfig): Finding[] {
  const found: Finding[] = []
  const files = [tls?.certificate, tls?.key].filter(Boolean).length
  if (tls && (files === 1 || (files === 2) === Boolean(tls.directory)))
    found.push({ at: ['tls'], message: 'tls requires either certificate and key, or directory' })
  const check = (at: At, value: string | undefined, pattern: RegExp, what: string) => {
    if (value !== undefined && !pattern.test(value)) found.push({ at, message: `${at.join('.')} must be ${what}` })
  }
  const url = 'an https URL without a trailing slash'
  check(['listen'], listen, address, 'HOST:PORT')
  check(['status'], status === 'off' ? undefined : status, address, 'HOST:PORT or off')
  check(['issuer', 'url'], issuer?.url, https, url)
  check(['issuer', 'keySet'], issuer?.keySet, https, url)
  check(['service', 'url'], service?.url, https, url)
  if (limits?.share !== undefined && limits.share > 100)
    found.push({ at: ['limits', 'share'], message: 'limits.share must be a percentage from 1 to 100' })
  return found
}

function checkTargets({ clusters = [], virtualClusters = [], spaces = [] }: PartialConfig): Finding[] {
  const found: Finding[] = []
  const names = clusters.map(one => one?.name)
  const seen = new Set<string>()
  const once = (list: string, index: number, names: readonly (string | undefined)[]) => {
    if (names.includes(undefined)) return
    const key = names.join('/')
    if (seen.has(`${list} ${key}`))
      found.push({ at: [list, index, 'name'], message: `${list}: duplicate name "${key}"` })
    seen.add(`${list} ${key}`)
  }
  const named = (list: string, index: number, fields: { readonly [field: string]: string | undefined }) => {
    for (const [field, value] of Object.entries(fields))
      if (value !== undefined && !isTargetName(value))
        found.push({
          at: [list, index, field],
          message: `${list}[${index}].${field} must consist of lower-case letters, digits, - and .`,
        })
  }
  for (const [index, one] of present(clusters)) {
    named('clusters', index, { name: one.name })
    once('clusters', index, [one.name])
    found.push(...checkReached(one, ['clusters', index]))
  }
  for (const [index, one] of present(virtualClusters)) {
    named('virtualClusters', index, { name: one.name, project: one.project })
    once('virtualClusters', index, [one.project, one.name])
    found.push(...checkReached(one, ['virtualClusters', index]))
  }
  for (const [index, one] of present(spaces)) {
    const { project, cluster, namespace } = one
    named('spaces', index, { name: one.name, project, namespace })
    once('spaces', index, [project, one.name])
    // The cluster may be one whose name is invalid.
    if (cluster !== undefined && !names.includes(cluster) && !names.includes(undefined))
      found.push({
        at: ['spaces', index, 'cluster'],
        message: `spaces[${index}].cluster: "${cluster}" is not in clusters${didYouMean(cluster, names as string[])}`,
      })
  }
  return found
}

const present = <T>(list: readonly (T | undefined)[]) =>
  [...list.entries()].filter((one): one is [number, T] => one[1] !== undefined)

function checkReached({ kubeconfig, context, inCluster }: ReachedBy, at: At): Finding[] {
  const where = `${at[0]}[${at[1]}]`
  if (Boolean(kubeconfig) === (inCluster === true))
    return [{ at, message: `${where} requires either kubeconfig or inCluster: true` }]
  return context && !kubeconfig ? [{ at, message: `${where}.context requires kubeconfig` }] : []
}

function checkAgent({ agent, clusters = [] }: PartialConfig): Finding[] {
  const { cluster, namespace } = agent ?? {}
  const found: Finding[] = []
  const names = clusters.map(one => one?.name)
  if (cluster !== undefined && !names.includes(cluster) && !names.includes(undefined))
    found.push({
      at: ['agent', 'cluster'],
      message: `agent.cluster: "${cluster}" is not in clusters${didYouMean(cluster, names as string[])}`,
    })
  if (namespace !== undefined && dnsLabel(namespace).length)
    found.push({ at: ['agent', 'namespace'], message: 'agent.namespace must be the name of a namespace' })
  return found
}

/** Names with the prefix system: belong to the cluster (D33). */
function checkIdentity({ identity = {} }: PartialConfig): Finding[] {
  return (['userPrefix', 'groupPrefix'] as const)
    .filter(field => !/^[\w:.@/-]*$/.test(identity[field] ?? '') || identity[field]?.startsWith('system:'))
    .map(field => ({
      at: ['identity', field],
      message: `identity.${field} must consist of letters, digits and :.@/_- and must not start with system:`,
    }))
}
