// Describes a finished request of the gateway for its trace.

import type { Exchange } from '../serving/exchange.ts'
import { httpOutcome } from '../serving/tracing/http-attributes.ts'
import type { Outcome } from '../serving/tracing/tracing.ts'
import type { Route } from './proxy/routes.ts'

type Finished = { readonly exchange: Exchange; readonly route: Route | undefined; readonly code: number }

const routes: { readonly [target in Route['target']['target']]: string } = {
  Cluster: '/kubernetes/cluster/{cluster}/{path}',
  ProjectVirtualCluster: '/kubernetes/project/{project}/virtualcluster/{virtualcluster}/{path}',
  ProjectSpace: '/kubernetes/project/{project}/space/{space}/{path}',
}

export function outcomeOf({ exchange, route, code }: Finished): Outcome {
  if (!route) return httpOutcome(exchange, { route: undefined, code, attributes: {} })
  const { act, target } = route
  // Only the cluster knows whether a resource exists. Otherwise it may be any word of the client.
  const isKnown = code < 400 && 'resource' in act
  const attributes = {
    'platform.verb': act.verb,
    'platform.target': target.target,
    'platform.resource': isKnown ? act.resource : undefined,
    'platform.subresource': isKnown ? act.subresource : undefined,
  }
  return httpOutcome(exchange, { route: routes[target.target], code, attributes })
}
