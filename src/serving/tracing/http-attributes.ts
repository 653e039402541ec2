// Attributes of HTTP spans, in the names of OpenTelemetry. None has a name of an object, a query, a header or a body.

import type { Exchange, Request } from '../exchange.ts'
import type { Attributes, Outcome } from './tracing.ts'

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'])

/** A client can send any word as its method. */
const methodOf = ({ method = 'GET' }: Request) => (methods.has(method) ? method : '_OTHER')

/** Of a User-Agent header, which can contain anything, only a word of this list. */
const agents: readonly (readonly [RegExp, string])[] = [
  [/^kubectl/, 'kubectl'],
  [/^platform/, 'platform'],
  [/^Prometheus\//, 'prometheus'],
  [/^argocd/i, 'argocd'],
  [/^(flux|source-controller|kustomize-controller|helm-controller)/i, 'flux'],
  [/^Terraform|HashiCorp/i, 'terraform'],
  [/^kube-probe\//, 'kube-probe'],
  [/^Mozilla\//, 'browser'],
  [/^curl\//, 'curl'],
  [/kubernetes\/|^Go-http-client/, 'go'],
  [/^(node|undici)/, 'node'],
]

const agentOf = (userAgent: string | undefined) =>
  userAgent === undefined ? 'none' : (agents.find(([pattern]) => pattern.test(userAgent))?.[1] ?? 'other')

/** Known when a request arrives. */
export const requestAttributes = (request: Request): Attributes => ({
  'http.request.method': methodOf(request),
  'url.scheme': 'encrypted' in request.socket ? 'https' : 'http',
  'network.protocol.version': request.httpVersionMajor === 2 ? '2' : request.httpVersion,
  'user_agent.name': agentOf(request.headers['user-agent']),
})

export type HttpResult = {
  /** A template such as `/apis/{group}`; undefined: the path is unknown, and is not shown. */
  readonly route: string | undefined
  readonly code: number
  readonly attributes: Attributes
}

/** The end of a span of a request. Its audit id is in the log, in the audit log and in the response. */
export const httpOutcome = ({ request, auditId }: Exchange, { route, code, attributes }: HttpResult): Outcome => ({
  name: route === undefined ? methodOf(request) : `${methodOf(request)} ${route}`,
  attributes: {
    'http.route': route,
    'http.response.status_code': code,
    'error.type': code >= 500 ? String(code) : undefined,
    'platform.audit_id': auditId,
    ...attributes,
  },
  // An error of the client is not one of the server.
  isError: code >= 500,
})

const quiet = /^(?:\/kubernetes\/management)?\/(?:livez|readyz|healthz|metrics)(?:\/|$)/

/** Probes and scrapes come all day. */
export const isQuiet = (path: string): boolean => quiet.test(path)
