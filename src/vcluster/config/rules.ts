// What a vcluster.yaml must keep beyond its shape: which switches go together, what needs a licence. config.ts calls it.

import { dnsSubdomain } from '../../api/names.ts'
import type { Json, JsonObject } from '../../api/object.ts'
import type { At } from '../../api/yaml-source.ts'
import { networkProblem } from './address-policy.ts'
import { allowedEntryProblem, keyEntryProblem } from './metadata-keys.ts'
import { namespaceMap } from './namespaces.ts'
import type { Config } from './schema.ts'

/** Something wrong at a place in the value; the text knows where that is in the file. */
export type Finding = {
  readonly at: At
  readonly offset?: number
  /** Whether the key is meant and not its value. */
  readonly key?: boolean
  readonly message: string
}

type Ruled = { readonly config: Config; readonly problems: readonly Finding[]; readonly warnings: readonly Finding[] }

const toHost = ['sync', 'toHost']
const endpointsOn = [...toHost, 'endpoints', 'enabled']
const servicesOn = [...toHost, 'services', 'enabled']

/** `given` is the file as it is, `merged` has the defaults. */
export function checkRules(given: JsonObject, merged: Config, whyNoPatches: string | undefined): Ruled {
  const problems: Finding[] = []
  const warnings: Finding[] = []
  const config = switches(given, merged, problems, warnings)
  namespaces(config, problems)
  entries(config, problems)
  patches(config, whyNoPatches, problems, warnings)
  const domain = config.networking.advanced.clusterDomain
  if (dnsSubdomain(domain).length)
    problems.push({
      at: ['networking', 'advanced', 'clusterDomain'],
      message: `networking.advanced.clusterDomain must be a domain such as cluster.local, without a dot at the end`,
    })
  return { config, problems, warnings }
}

/** Endpoint sync needs the control plane as a container and host nodes; service sync needs endpoint sync. */
function switches(given: JsonObject, merged: Config, problems: Finding[], warnings: Finding[]): Config {
  const isSet = (at: readonly string[]) => {
    const value = at.reduce<Json | undefined>((inside, key) => (inside as JsonObject | undefined)?.[key], given)
    return value !== undefined && value !== null
  }
  const apart = merged.privateNodes.enabled
    ? 'privateNodes.enabled'
    : merged.controlPlane.standalone.enabled
      ? 'controlPlane.standalone.enabled'
      : undefined
  const { services, endpoints } = merged.sync.toHost
  const isOn = endpoints.enabled && apart === undefined
  if (endpoints.enabled && apart !== undefined) {
    const why = `endpoint sync needs the control plane as a container and host nodes, and ${apart} is true`
    if (isSet(endpointsOn))
      problems.push({ at: endpointsOn, message: `${why}: set sync.toHost.endpoints.enabled to false or leave it out` })
    else warnings.push({ at: apart.split('.'), message: `${why}: endpoint sync is off, and service sync with it` })
  }
  if (isOn || !services.enabled) return withSwitches(merged, isOn, services.enabled && isOn)
  const off = apart === undefined ? 'sync.toHost.endpoints.enabled is false' : `${apart} is true`
  if (isSet(servicesOn))
    problems.push({
      at: servicesOn,
      message: `service sync needs endpoint sync, and ${off}: set ${
        apart === undefined ? 'sync.toHost.endpoints.enabled to true, or ' : ''
      }sync.toHost.services.enabled to false`,
    })
  else if (apart === undefined)
    warnings.push({ at: endpointsOn, message: 'service sync needs endpoint sync: it is off, too' })
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
      message:
        'sync.toHost.namespaces.enabled needs sync.toHost.namespaces.mappings.byName: say where objects of each namespace go',
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
      // The shape check has reported entries of another type, and put null in their place.
      const problem = typeof entry === 'string' && entryChecks[key](entry)
      if (problem) problems.push({ at: [...toHost, 'endpoints', key, index], message: `${key}[${index}] ${problem}` })
    }
}

function patches(config: Config, whyNot: string | undefined, problems: Finding[], warnings: Finding[]): void {
  for (const kind of ['services', 'endpoints'] as const) {
    const { patches: list, enabled } = config.sync.toHost[kind]
    const at = [...toHost, kind, 'patches']
    const name = at.join('.')
    if (list.length === 0) continue
    if (whyNot !== undefined)
      problems.push({ at, key: true, message: `${name} needs the enterprise feature: ${whyNot}` })
    else if (kind === 'services')
      warnings.push({ at, key: true, message: `${name} is checked and not used: services are synced by somebody else` })
    else if (!enabled) warnings.push({ at, key: true, message: `${name} has no effect: endpoint sync is off` })
  }
}
