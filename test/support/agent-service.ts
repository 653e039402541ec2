// A stand-in for the routes of the management API that an agent uses: clusters/<name>/status and clusters/<name>/desired.

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { ClusterProblem } from '../../src/kinds/cluster.ts'
import type { DesiredItem, DesiredRole, DesiredSecret } from '../../src/kinds/cluster-desired.ts'

export type ReportedStatus = {
  readonly kubernetesVersion?: string
  readonly agentVersion?: string
  readonly lastContact?: string
  readonly desiredVersion?: string
  readonly problems: readonly ClusterProblem[]
}

export type AgentService = {
  readonly url: string
  /** The uid of the Cluster. A new one, and the end of all streams: it was deleted and created again. */
  uid: string
  put(name: string, content: { readonly role: DesiredRole } | { readonly secret: DesiredSecret }): void
  remove(name: string): void
  /** Every request gets this code, and open streams end with it; undefined: none. */
  reject(code: 401 | 403 | 404 | undefined): void
  /** New streams stop before the bookmark that completes their initial state. */
  holdsBookmark: boolean
  /** Requests that were rejected. */
  readonly rejections: () => number
  /** Streams that were opened. */
  readonly opened: () => number
  /** The reports, newest last. */
  readonly reports: readonly ReportedStatus[]
  readonly version: () => string
  /** Stops listening and drops every connection, and listens again at the same address. */
  stop(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}

const reasons = { 401: 'Unauthorized', 403: 'Forbidden', 404: 'NotFound' } as const

export async function openAgentService(cluster = 'prod'): Promise<AgentService> {
  const root = `/kubernetes/management/apis/management.platform.sh/v1/clusters/${cluster}`
  const items = new Map<string, DesiredItem>()
  const streams = new Set<ServerResponse>()
  const reports: ReportedStatus[] = []
  const state = {
    rejection: undefined as keyof typeof reasons | undefined,
    holdsBookmark: false,
    uid: randomUUID() as string,
  }
  let version = 1
  let opened = 0
  let rejections = 0
  const statusOf = (code: keyof typeof reasons) => ({
    ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' },
    ...{ code, reason: reasons[code], message: `the cluster ${cluster} is not for you` },
  })
  const line = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`
  const send = (type: string, object: object) => {
    for (const stream of streams) stream.write(line(type, object))
  }
  const endStreams = () => {
    for (const one of streams) one.end()
    streams.clear()
  }
  const stream = (response: ServerResponse) => {
    opened++
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.flushHeaders()
    for (const item of items.values()) response.write(line('ADDED', item))
    const annotations = { 'k8s.io/initial-events-end': 'true' }
    const metadata = { resourceVersion: String(version), annotations }
    if (!state.holdsBookmark) response.write(line('BOOKMARK', { kind: 'ClusterDesiredItem', metadata }))
    streams.add(response)
    response.on('close', () => streams.delete(response))
  }
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname } = new URL(request.url ?? '', 'http://localhost')
    const answer = (code: number, body: object) =>
      response.writeHead(code, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    if (state.rejection) rejections++
    if (state.rejection) return answer(state.rejection, statusOf(state.rejection))
    if (request.headers.authorization !== 'Bearer agent-key') return answer(401, statusOf(401))
    const object = {
      apiVersion: 'management.platform.sh/v1',
      kind: 'Cluster',
      metadata: { name: cluster, uid: state.uid },
    }
    if (pathname === `${root}/desired`) return stream(response)
    if (pathname !== `${root}/status`) return answer(404, statusOf(404))
    if (request.method === 'PATCH') reports.push(((await json(request)) as { readonly status: ReportedStatus }).status)
    return answer(200, object)
  }
  const handle = (request: IncomingMessage, response: ServerResponse) => void serve(request, response)
  let server = createServer(handle)
  const listen = (port: number) => new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  const { port } = server.address() as AddressInfo
  const stop = async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
  return {
    url: `http://127.0.0.1:${port}`,
    get uid() {
      return state.uid
    },
    set uid(next) {
      state.uid = next
      endStreams()
    },
    put(name, content) {
      const item: DesiredItem = {
        ...{ apiVersion: 'management.platform.sh/v1', kind: 'ClusterDesiredItem' },
        metadata: { name, resourceVersion: String(++version) },
        ...content,
      }
      const isNew = !items.has(name)
      items.set(name, item)
      send(isNew ? 'ADDED' : 'MODIFIED', item)
    },
    remove(name) {
      const item = items.get(name)
      items.delete(name)
      if (item) send('DELETED', { ...item, metadata: { name, resourceVersion: String(++version) } })
    },
    reject(code) {
      state.rejection = code
      if (!code) return
      send('ERROR', statusOf(code))
      endStreams()
    },
    get holdsBookmark() {
      return state.holdsBookmark
    },
    set holdsBookmark(next) {
      state.holdsBookmark = next
    },
    rejections: () => rejections,
    opened: () => opened,
    reports,
    version: () => String(version),
    stop,
    async start() {
      server = createServer(handle)
      await listen(port)
    },
    close: stop,
  }
}
