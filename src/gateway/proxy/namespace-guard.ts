// Limits a space to discovery and to its namespace in the cluster (D33). Pure.

import { forbiddenPath } from '../../api/errors.ts'
import { describeTarget, type Route } from './routes.ts'

const discovery = /^\/(api(\/v1)?|apis(\/[^/]+){0,2}|openapi(\/.*)?|version)?\/?$/

/** Throws 403. */
export function confine(route: Route, namespace: string): void {
  if (isInside(route, namespace)) return
  throw forbiddenPath(
    `${describeTarget(route.target)} is the namespace "${namespace}": it allows only discovery and paths inside that namespace`,
  )
}

function isInside({ act, path }: Route, namespace: string): boolean {
  if (!('resource' in act)) return act.verb === 'get' && discovery.test(path)
  const isItself = act.group === '' && act.resource === 'namespaces'
  if (isItself) return act.verb === 'get' && act.name === namespace && !act.subresource && !act.namespace
  // The forwarded body is byte for byte the checked one.
  return (
    act.namespace === namespace &&
    /^\/(?:api\/v1|apis\/[^/]+\/[^/]+)$/.test(path.split(`/namespaces/${namespace}/`)[0] ?? '')
  )
}
