// The headers that a cluster and a client receive. Only this file sets the identity headers. Pure.

import { badRequest, forbiddenPath } from '../../api/errors.ts'
import type { Request } from '../../serving/exchange.ts'
import type { Principal } from '../auth/principal.ts'

export type Prefixes = { readonly userPrefix: string; readonly groupPrefix: string }

/** On requests of a central route, to detect loops. */
export const centralRouteHeader = 'x-platform-central-route'

/** Hop-by-hop headers, headers that the gateway sets, and other ways to state an identity. */
const dropped = new Set([
  'authorization',
  'proxy-authorization',
  'proxy-authenticate',
  'proxy-connection',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'content-length', // the upstream request frames the body itself
  'upgrade',
  'http2-settings',
  'expect',
  'host',
  'cookie',
  'forwarded',
  'audit-id',
  'x-real-ip',
  'x-access-token',
  'x-email',
  'x-groups',
  'x-id-token',
  'x-original-url',
  'x-rewrite-url',
  'x-http-method-override',
  centralRouteHeader,
])
/**
 * Identity headers of proxies and load balancers: nginx, oauth2-proxy, Authelia, Kong, Envoy, Pomerium, Vouch, Traefik and those of
 * clouds. A cluster behind such a proxy may trust them, so clients must not set them.
 */
const droppedPrefixes = [
  ':',
  'x-remote-',
  'x-forwarded-',
  'x-auth-',
  'x-authenticated-',
  'x-authentik-',
  'x-client-cert',
  'x-client-dn',
  'x-client-verify',
  'x-consumer-',
  'x-credential-',
  'x-envoy-',
  'x-goog-authenticated-',
  'x-goog-iap-',
  'x-amzn-oidc-',
  'x-amzn-mtls-',
  'x-ms-client-principal',
  'x-ms-token-',
  'x-pomerium-',
  'x-ssl-',
  'x-tls-client-',
  'x-user',
  'x-vouch-',
  'x-webauth-',
  'cf-access-',
  'client-cert',
  'remote-',
  'ssl-client-',
  'tailscale-user-',
]
const bearerProtocol = 'base64url.bearer.authorization.k8s.io.'

/** Some servers treat _ as -, so both are equal here. */
const plain = (name: string) => name.toLowerCase().replaceAll('_', '-')

/** A Connection header must not remove the headers for framing and identity. */
const notByConnection = ['content-length', 'transfer-encoding', 'host', 'authorization']

/** Throws 403 for impersonation headers, which the gateway does not accept, and 400 for a header that hides the framing of the request. */
export function checkInbound({ rawHeaders, headers: { connection } }: Request): void {
  const named = namedByConnection(connection)
  const hidden = named.size && notByConnection.find(name => named.has(name))
  if (hidden) throw badRequest(`the Connection header must not name ${hidden}`)
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (actionOf(rawHeaders[index] as string) === 'refused')
      throw forbiddenPath('Impersonate headers are not allowed: the gateway sets them from the token or access key')
}

type HeaderAction = 'kept' | 'dropped' | 'protocols' | 'trace' | 'refused'

/** A cache: there are few names, and the same in every request. */
const headerActions = new Map<string, HeaderAction>()

/** Only short names, because clients and clusters may send any. */
function remember<T>(cache: Map<string, T>, name: string, value: T): T {
  if (name.length <= 64 && cache.size < 1000) cache.set(name, value)
  return value
}

function actionOf(sent: string): HeaderAction {
  const known = headerActions.get(sent)
  if (known) return known
  const name = plain(sent)
  const action = name.startsWith('impersonate-')
    ? 'refused'
    : dropped.has(name) || droppedPrefixes.some(one => name.startsWith(one))
      ? 'dropped'
      : name === 'sec-websocket-protocol'
        ? 'protocols'
        : name === 'traceparent'
          ? 'trace'
          : 'kept'
  return remember(headerActions, sent, action)
}

export type Outbound = {
  readonly request: Request
  readonly principal: Principal
  readonly prefixes: Prefixes
  readonly authorization: string | undefined
  readonly auditId: string
  /** Whether the Authorization header identifies the caller, so that nothing is impersonated. */
  readonly isIdentified: boolean
  /** Replaces the trace context of the client; undefined: keeps it. */
  readonly traceparent: string | undefined
}

/** Adds name, value, name, value. Throws 403 for a name that the cluster would treat as its own. */
export function requestHeaders(
  headers: string[],
  { request, principal, prefixes, authorization, auditId, isIdentified, traceparent }: Outbound,
): void {
  const { rawHeaders, socket } = request
  const named = namedByConnection(request.headers.connection)
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string
    const action = actionOf(name)
    if (action === 'dropped' || action === 'refused' || (named.size && named.has(plain(name)))) continue
    if (action === 'trace' && traceparent !== undefined) continue
    const value = rawHeaders[index + 1] as string
    if (action !== 'protocols') headers.push(name, value)
    else headers.push(...protocols(value))
  }
  headers.push('X-Forwarded-For', socket.remoteAddress ?? '', 'Audit-ID', auditId)
  if (traceparent !== undefined) headers.push('Traceparent', traceparent)
  if (authorization !== undefined) headers.push('Authorization', authorization)
  if (isIdentified) headers.push(centralRouteHeader, '1')
  else for (const one of impersonation(principal, prefixes)) headers.push(one)
}

const none: ReadonlySet<string> = new Set()

function namedByConnection(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined || /^keep-alive$/i.test(connection)) return none
  return new Set(connection.split(',').map(one => plain(one.trim())))
}

/** Browsers can send a bearer token only in this header. The cluster must not receive it. */
function protocols(value: string): string[] {
  const kept = value
    .split(',')
    .map(one => one.trim())
    .filter(one => one !== '' && !one.toLowerCase().startsWith(bearerProtocol))
  return kept.length ? ['Sec-WebSocket-Protocol', kept.join(', ')] : []
}

const made = new WeakMap<Principal, { readonly prefixes: Prefixes; readonly headers: readonly string[] }>()

/** No caller has a user or group name of the cluster itself, except system:authenticated (D33). */
function impersonation(principal: Principal, prefixes: Prefixes): readonly string[] {
  const kept = made.get(principal)
  if (kept?.prefixes === prefixes) return kept.headers
  const { caller, keyUid, jti } = principal
  const user = `${prefixes.userPrefix}${caller.username}`
  if (user === '' || user.startsWith('system:'))
    throw forbiddenPath(
      `User "${user}" is reserved for the cluster (prefix system:), so the gateway does not forward the request`,
    )
  const groups = caller.groups
    .map(group => (group === everyone ? group : `${prefixes.groupPrefix}${group}`))
    .filter(group => group === everyone || !group.startsWith('system:'))
  const headers = [
    ['Impersonate-User', user],
    ...[...new Set([...groups, everyone])].map(group => ['Impersonate-Group', group]),
    ...(caller.uid ? [['Impersonate-Uid', caller.uid]] : []),
    [`Impersonate-Extra-${encodeURIComponent('authentication.platform.sh/key')}`, keyUid],
    ...(jti === undefined
      ? []
      : [[`Impersonate-Extra-${encodeURIComponent('authentication.platform.sh/token')}`, jti]]),
  ].flatMap(([name = '', value = '']) => [name, bytes(value)])
  made.set(principal, { prefixes, headers })
  return headers
}

const everyone = 'system:authenticated'

/** Sends names as UTF-8, which Go servers expect. Throws 403 for characters that a header cannot contain. */
function bytes(value: string): string {
  if (/[\x00-\x1f\x7f]/.test(value) || value.trim() !== value)
    throw forbiddenPath(
      'a user or group name has control characters, or leading or trailing blanks: the gateway cannot impersonate it',
    )
  return /[^\x00-\x7f]/.test(value) ? Buffer.from(value).toString('latin1') : value
}

const droppedResponseHeaders = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'transfer-encoding',
  'trailer',
  'upgrade',
  'te',
  'alt-svc',
  'set-cookie',
  'audit-id',
])

const responseHeaderCache = new Map<string, boolean>()

function isPassedOn(sent: string): boolean {
  const known = responseHeaderCache.get(sent)
  if (known !== undefined) return known
  return remember(responseHeaderCache, sent, !droppedResponseHeaders.has(plain(sent)))
}

/** Removes cookies and alternative services of a cluster: clients would apply them to the gateway, and so to all of its clusters. */
export function responseHeaders(
  auditId: string,
  rawHeaders: readonly string[],
  connection: string | undefined,
): string[] {
  const named = namedByConnection(connection)
  const headers = ['Audit-Id', auditId]
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string
    if (isPassedOn(name) && !(named.size && named.has(plain(name)))) headers.push(name, rawHeaders[index + 1] as string)
  }
  return headers
}
