// The targets of the central route that come from Cluster objects: their gateways, and the tokens for them (D68).

import type { Caller } from '../api/caller.ts'
import { ApiError, unavailable } from '../api/errors.ts'
import type { Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { scopeForCluster } from '../auth/authz/cluster-scope.ts'
import type { Issuer } from '../auth/tokens/issuer.ts'
import { expiryLeeway } from '../auth/tokens/token.ts'
import { Cluster, type ClusterObject } from '../kinds/cluster.ts'
import { type Informer, startInformer } from '../reconcile/informer.ts'
import type { Request } from '../serving/exchange.ts'
import { openDial } from '../transport/dial.ts'
import type { Setup } from './gateway.ts'
import type { Found, Identification } from './proxy/backend.ts'

export type ClusterRoutesOptions = {
  readonly resources: Resources
  readonly sign: Issuer['sign']
  /** The caller of a request with an access key, as it is now. Throws 401. */
  readonly callerOf: (request: Request) => Caller | undefined
  readonly env: { readonly [name: string]: string | undefined }
  readonly now: () => number
  readonly failed: (error: unknown) => void
}

export type ClusterRoutes = {
  /** Resolves after the first list. */
  readonly ready: Promise<void>
  /** Throws 404 or 503 if the cluster exists, but cannot be reached this way. */
  readonly find: Setup['find']
  /** The uid of the Cluster with this name. */
  uidOf(cluster: string): string | undefined
  /** Forgets all tokens. Call it after a revocation, which may concern them. */
  forgetTokens(): void
  stop(): void
}

/** A stock cluster would accept a token for at most this time (D31). */
const ttl = 900
/** Milliseconds before the expiry at which a token is replaced. A stream ends with its token, so it gets a newer one. */
const renewBefore = 60_000
const renewBeforeStream = 600_000
const maxTokens = 10_000

type Route = { readonly found: Found } | { readonly problem: () => ApiError }

export function openClusterRoutes({ resources, failed, ...options }: ClusterRoutesOptions): ClusterRoutes {
  const routes = new Map<
    string,
    { readonly uid: string; readonly stamp: string; readonly route: Route; close(): void }
  >()
  const tokens = openTokens(options)
  const informer: Informer<ClusterObject> = startInformer({
    resources,
    kind: Cluster,
    keep: (object: Resource) => object as ClusterObject,
    changed: ({ name }, cluster) => {
      const before = routes.get(name)
      const stamp = JSON.stringify(cluster && [cluster.metadata.uid, endpointOf(cluster)])
      if (before && before.stamp === stamp) return
      before?.close()
      const uid = cluster?.metadata.uid ?? ''
      if (cluster) routes.set(name, { uid, stamp, ...openRoute(cluster, options, tokens.identify) })
      else routes.delete(name)
    },
    failed,
  })
  return {
    ready: informer.ready,
    find(target) {
      const route = target.target === 'Cluster' ? routes.get(target.cluster)?.route : undefined
      if (route && 'problem' in route) throw route.problem()
      return route?.found
    },
    uidOf: cluster => routes.get(cluster)?.uid,
    forgetTokens: tokens.forget,
    stop() {
      informer.stop()
      for (const { close } of routes.values()) close()
    },
  }
}

/** Everything that a route depends on. */
function endpointOf({ metadata, spec = {} }: ClusterObject) {
  const { url, caBundle } = spec.gateway ?? {}
  return { url, caBundle, isDisabled: spec.disabled === true, isDeleting: metadata.deletionTimestamp !== undefined }
}

function openRoute(
  cluster: ClusterObject,
  { env, now }: Pick<ClusterRoutesOptions, 'env' | 'now'>,
  identify: (cluster: string, uid: string) => (who: Identification) => Promise<string>,
): { readonly route: Route; close(): void } {
  const { name = '', uid = '' } = cluster.metadata
  const { url, caBundle, isDisabled, isDeleting } = endpointOf(cluster)
  const problem = (make: () => ApiError) => ({ route: { problem: make }, close: () => {} })
  if (isDeleting) return problem(() => notFound(`cluster ${name} is being deleted`))
  if (isDisabled) return problem(() => unavailable(`cluster ${name} is disabled`))
  if (!url)
    return problem(() => notFound(`cluster ${name} has no gateway that this server can reach: set spec.gateway.url`))
  const ended = new AbortController()
  const dial = openDial(
    {
      // The gateway serves only this path of the cluster, so no other path of another server can be reached.
      server: `${url.replace(/\/+$/, '')}/kubernetes/cluster/${name}`,
      namespace: '',
      insecure: false,
      ...(caBundle ? { ca: { text: caBundle } } : {}),
    },
    { env, now },
  )
  return {
    route: {
      found: {
        backend: { ...dial, name: `the gateway of cluster ${name}`, identify: identify(name, uid) },
        ended: ended.signal,
      },
    },
    close() {
      // Before the connections close, so that clients get the reason.
      ended.abort()
      dial.retire()
    },
  }
}

const notFound = (message: string) => new ApiError(404, 'NotFound', message, { details: {} })

type Kept = { readonly signed: Promise<{ readonly token: string; readonly expires: number }>; expires: number }

/** Tokens by caller and cluster. Requests that arrive at the same time share one. */
function openTokens({ sign, callerOf, now }: Pick<ClusterRoutesOptions, 'sign' | 'callerOf' | 'now'>) {
  const kept = new Map<string, Kept>()

  function create({ principal, request }: Identification, cluster: string, clusterUid: string): Kept['signed'] {
    const { jti, issued, expires, keyUid } = principal
    const scope = scopeForCluster(principal.caller.scope, cluster)
    // The token replaces that of the caller. It keeps its id and its time of issue, so that revocations apply to both.
    if (jti !== undefined)
      return sign(
        { ...principal.caller, keyUid },
        { ttl, scope, clusterUid, instead: { jti, issued, expires: expires - expiryLeeway * 1000 } },
      )
    const caller = callerOf(request)
    if (!caller || JSON.stringify(caller.scope) !== JSON.stringify(principal.caller.scope)) throw changed()
    return sign(caller, { ttl, scope, clusterUid })
  }

  return {
    forget: () => kept.clear(),
    identify: (cluster: string, uid: string) => async (who: Identification) => {
      const { principal, isLong, isAgain } = who
      const { caller, keyUid, jti } = principal
      const key = JSON.stringify([cluster, uid, keyUid, jti, caller.username, caller.groups, caller.scope])
      const left = isLong ? renewBeforeStream : renewBefore
      let one = isAgain ? undefined : kept.get(key)
      // The token of the caller may itself end soon: then a new one would not live longer.
      const latest = jti === undefined ? Number.POSITIVE_INFINITY : principal.expires - expiryLeeway * 1000
      if (!one || (one.expires - left <= now() && one.expires < Math.min(latest, now() + ttl * 1000) - 1000)) {
        const signed = create(who, cluster, uid)
        one = { signed, expires: now() + ttl * 1000 }
        const made = one
        kept.delete(key)
        kept.set(key, made)
        if (kept.size > maxTokens) for (const oldest of kept.keys()) if (kept.delete(oldest)) break
        signed.then(
          ({ expires }) => {
            made.expires = expires
          },
          () => {
            if (kept.get(key) === made) kept.delete(key)
          },
        )
      }
      return `Bearer ${(await one.signed.catch(retryLater)).token}`
    },
  }
}

const changed = () =>
  new ApiError(503, 'ServiceUnavailable', 'the access key or its scope has just changed; retry', {
    details: { retryAfterSeconds: 1 },
  })

/** The conflict of a token whose caller changed meanwhile says nothing about the request. */
function retryLater(error: unknown): never {
  throw error instanceof ApiError && error.code === 409 ? changed() : error
}
