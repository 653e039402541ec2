// Checks rules of a vcluster.yaml that the schema cannot express, such as dependencies between settings.

import { dnsSubdomain } from '../../api/names.ts'
import type { Json, JsonObject } from '../../api/object.ts'
import type { At } from '../../api/yaml-source.ts'
import { labelIn } from '../patch/path.ts'
import { endpointSlicesKind } from '../sync/endpoint-slices-kind.ts'
import { networkProblem } from './address-policy.ts'
import { allowedEntryProblem, keyEntryProblem } from './metadata-keys.ts'
import { namespaceMap } from './namespaces.ts'
import { type GroupKind, groupKindOf, kindWarning } from './reference-kinds.ts'
import type { Config } from './schema.ts'

/** A problem at a path of the value, which config.ts maps to line and column. */
export type Finding = {
  readonly at: At
  readonly offset?: number
  /** Points at the key instead of the value. */
  readonly key?: boolean
  readonly message: string
}

export type LoadOptions = {
  /** Undefined if patches are allowed. */
  readonly noPatchesReason: string | undefined
  /** The kinds of --sync-references. */
  readonly syncReferences?: readonly GroupKind[]
}

type RuleResult = {
  readonly config: Config
  readonly problems: readonly Finding[]
  readonly warnings: readonly Finding[]
}

const toHost = ['sync', 'toHost']
const endpointsOn = [...toHost, 'endpoints', 'enabled']
const servicesOn = [...toHost, 'services', 'enabled']
const slicesOn = [...toHost, 'endpointSlices', 'enabled']

/** `given` is the file, `merged` includes the defaults. */
export function checkRules(
  given: JsonObject,
  merged: Config,
  { noPatchesReason, syncReferences }: LoadOptions,
): RuleResult {
  const problems: Finding[] = []
  const warnings: Finding[] = []
  const config = switches(given, merged, problems, warnings)
  namespaces(config, problems)
  entries(config, problems)
  patches(config, noPatchesReason, problems, warnings)
  if (noPatchesReason === undefined)
    warnings.push(...unsyncedReferences(config, syncReferences), ...labelsOfSyncer(config))
  const domain = config.networking.advanced.clusterDomain
  if (dnsSubdomain(domain).length)
    problems.push({
      at: ['networking', 'advanced', 'clusterDomain'],
      message: `networking.advanced.clusterDomain must be a domain such as cluster.local, without a trailing dot`,
    })
  return { config, problems, warnings }
}

/** Endpoint sync requires a control plane in a container and host nodes. Service sync requires endpoint sync. */
function switches(given: JsonObject, merged: Config, problems: Finding[], warnings: Finding[]): Config {
  const isSet = (at: readonly string[]) => {
    const value = at.reduce<Json | undefined>((inside, key) => (inside as JsonObject | undefined)?.[key], given)
    return value !== undefined && value !== null
  }
  const conflict = merged.privateNodes.enabled
    ? 'privateNodes.enabled'
    : merged.controlPlane.standalone.enabled
      ? 'controlPlane.standalone.enabled'
      : undefined
  const { services, endpoints, endpointSlices } = merged.sync.toHost
  const isOn = endpoints.enabled && conflict === undefined
  if (endpoints.enabled && conflict !== undefined) {
    const why = `endpoint sync requires a control plane in a container and host nodes, but ${conflict} is true`
    if (isSet(endpointsOn))
      problems.push({ at: endpointsOn, message: `${why}: set sync.toHost.endpoints.enabled to false or remove it` })
    else warnings.push({ at: conflict.split('.'), message: `${why}: endpoint sync and service sync are disabled` })
  }
  if (endpointSlices.enabled && conflict !== undefined)
    problems.push({
      at: slicesOn,
      message: `endpoint sync requires a control plane in a container and host nodes, but ${conflict} is true: set sync.toHost.endpointSlices.enabled to false or remove it`,
    })
  if (isOn || !services.enabled) return withSwitches(merged, isOn, services.enabled && isOn)
  const off = conflict === undefined ? 'sync.toHost.endpoints.enabled is false' : `${conflict} is true`
  if (isSet(servicesOn))
    problems.push({
      at: servicesOn,
      message: `service sync requires endpoint sync, but ${off}: set ${
        conflict === undefined ? 'sync.toHost.endpoints.enabled to true, or ' : ''
      }sync.toHost.services.enabled to false`,
    })
  else if (conflict === undefined)
    warnings.push({ at: endpointsOn, message: 'service sync requires endpoint sync: it is disabled, too' })
  return withSwitches(merged, false, false)
}

const withSwitches = (config: Config, endpoints: boolean, services: boolean): Config => ({
  ...config,
  sync: {
    ...config.sync,
    toHost: {
      ...config.sync.toHost,
      endpoints: { ...config.sync.toHost.endpoints, enabled: endpoints },
      services: { ...config.sync.toHost.services, enabled: services },
    },
  },
})

function namespaces({ sync }: Config, problems: Finding[]): void {
  const { enabled, mappings } = sync.toHost.namespaces
  const at = [...toHost, 'namespaces']
  if (!enabled) return
  if (Object.keys(mappings.byName).length === 0)
    problems.push({
      at: [...at, 'enabled'],
      message: 'sync.toHost.namespaces.enabled requires sync.toHost.namespaces.mappings.byName',
    })
  for (const { from, message } of namespaceMap(mappings.byName).problems)
    problems.push({ at: [...at, 'mappings', 'byName', from], key: true, message })
}

const entryChecks = {
  allowedCIDRs: networkProblem,
  deniedCIDRs: networkProblem,
  allowedMetadataKeys: allowedEntryProblem,
  deniedMetadataKeys: keyEntryProblem,
} as const

function entries({ sync }: Config, problems: Finding[]): void {
  for (const key of Object.keys(entryChecks) as (keyof typeof entryChecks)[])
    for (const [index, entry] of sync.toHost.endpoints[key].entries()) {
      // checkShape has replaced entries of the wrong type by null.
      const problem = typeof entry === 'string' && entryChecks[key](entry)
      if (problem) problems.push({ at: [...toHost, 'endpoints', key, index], message: `${key}[${index}] ${problem}` })
    }
}

function patches(config: Config, reason: string | undefined, problems: Finding[], warnings: Finding[]): void {
  for (const kind of ['services', 'endpoints', 'endpointSlices'] as const) {
    const { patches: list, enabled } = config.sync.toHost[kind]
    const at = [...toHost, kind, 'patches']
    const name = at.join('.')
    if (list.length === 0) continue
    if (reason !== undefined) problems.push({ at, key: true, message: `${name} requires a license: ${reason}` })
    else if (kind === 'services')
      warnings.push({
        at,
        key: true,
        message: `${name} is validated but not used: this program does not sync services`,
      })
    else if (!enabled)
      warnings.push({
        at,
        key: true,
        message: `${name} has no effect: ${kind === 'endpoints' ? 'endpoint sync is disabled' : 'sync.toHost.endpointSlices.enabled is false'}`,
      })
  }
}

/** The syncer sets these labels after the patches. */
function labelsOfSyncer({ sync }: Config): Finding[] {
  return sync.toHost.endpointSlices.patches.flatMap((patch, index) => {
    // patch.ts reports a malformed patch.
    const label = typeof patch?.path === 'string' ? labelIn(patch.path) : undefined
    if (label === undefined || !endpointSlicesKind.labelKeys.includes(label)) return []
    const message = `patches[${index}].path: the syncer sets the label ${label} itself, so this patch has no effect`
    return [{ at: [...toHost, 'endpointSlices', 'patches', index, 'path'], message }]
  })
}

/** With `kindPath` the kind is in the synced objects, so only `vcluster patch` and the syncer know it. */
function unsyncedReferences({ sync: { toHost: settings } }: Config, flagged: LoadOptions['syncReferences']): Finding[] {
  return (['endpoints', 'endpointSlices'] as const).flatMap(key => referenceWarnings(settings, key, flagged))
}

function referenceWarnings(
  settings: Config['sync']['toHost'],
  key: 'endpoints' | 'endpointSlices',
  flagged: LoadOptions['syncReferences'],
): Finding[] {
  return settings[key].patches.flatMap((patch, index) => {
    // patch.ts reports a malformed patch.
    const { apiVersion, kind, kindPath, labels } = patch?.reference ?? {}
    if (typeof apiVersion !== 'string' || typeof kind !== 'string') return []
    if (kindPath !== undefined || labels !== undefined || patch.labels !== undefined) return []
    const warning = kindWarning(groupKindOf({ apiVersion, kind }), settings, flagged)
    const at = [...toHost, key, 'patches', index, 'reference']
    return warning === undefined ? [] : [{ at, message: `patches[${index}].reference: ${warning}` }]
  })
}
