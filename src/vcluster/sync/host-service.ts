// Checks that an EndpointSlice on the host joins the Service of the tenant. The host adds a slice to any Service that it names.

import { ignoreNotFound } from '../../api/errors.ts'
import type { Metadata, Ref } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { isForbidden } from './api-errors.ts'
import { serviceState } from './cache-transforms.ts'
import type { SyncFailure } from './condition.ts'
import { hostRefOf, type Vcluster } from './host-ref.ts'
import { Service, type ServiceObject } from './kinds.ts'

/** Why slices of this Service of the virtual cluster must not be on the host; undefined: they may be. */
export async function hostServiceProblem(
  service: Ref,
  { host, vcluster }: { readonly host: Resources; readonly vcluster: Vcluster },
): Promise<SyncFailure | undefined> {
  const ref = hostRefOf(service, vcluster)
  if (!ref) return undefined
  const of = `the host's Service for ${service.namespace}/${service.name}`
  try {
    const found = (await host.get(Service, ref).catch(ignoreNotFound))?.object as ServiceObject | undefined
    const why = found && foreignBecause(found, service)
    if (why === undefined) return undefined
    const logged = `the Service ${ref.namespace}/${ref.name} on the host is not that of ${service.namespace}/${service.name}: ${why}`
    return { reason: 'HostObjectForeign', message: `${of} is another one`, logged }
  } catch (error) {
    if (!isForbidden(error)) throw error
    const message = `the syncer has no permission to get ${of}: ask the operator of the host`
    return { reason: 'HostForbidden', message, logged: error.message }
  }
}

/** The Service in the virtual cluster has no selector. Syncers of Services mark theirs with the names in the virtual cluster. */
function foreignBecause(found: ServiceObject, { namespace, name }: Ref): string | undefined {
  if (serviceState(found) === 'selector') return 'it has a selector'
  const markedAs = (end: string, wanted: string) => markOf(found.metadata, end, wanted)
  return markedAs('/object-name', name) ?? markedAs('/object-namespace', namespace)
}

function markOf({ annotations = {} }: Metadata, end: string, wanted: string): string | undefined {
  const other = Object.entries(annotations).find(([key, value]) => key.endsWith(end) && value !== wanted)
  return other && `it has ${other.join('=')}`
}
