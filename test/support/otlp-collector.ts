// A collector for tests: receives spans over OTLP/HTTP as JSON and keeps them.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eventually } from './wire.ts'

export type ReceivedSpan = {
  readonly service: string
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client'
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly attributes: { readonly [name: string]: string | number | boolean }
  readonly isError: boolean
}

export type Collector = {
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  /** All bodies as text, to search for secrets. */
  readonly text: () => string
  /** The headers of the requests, without the bodies. */
  readonly headers: readonly { readonly [name: string]: string | string[] | undefined }[]
  /** Resolves with a span that matches. */
  find(what: string, isWanted: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>
  close(): Promise<void>
}

type Value = { stringValue?: string; intValue?: number | string; doubleValue?: number; boolValue?: boolean }
type Attribute = { key: string; value: Value }
type Span = {
  name: string
  kind: number
  traceId: string
  spanId: string
  parentSpanId?: string
  attributes: Attribute[]
  status: { code: number }
}
type Body = {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: Span[] }[] }[]
}

const kinds: { readonly [kind: number]: ReceivedSpan['kind'] } = { 1: 'internal', 2: 'server', 3: 'client' }

export async function startCollector(): Promise<Collector> {
  const spans: ReceivedSpan[] = []
  const headers: Collector['headers'][number][] = []
  let text = ''
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    let body = ''
    for await (const chunk of request) body += chunk
    text += body
    headers.push(request.headers)
    const isTraces = request.method === 'POST' && request.url === '/v1/traces'
    if (isTraces) spans.push(...spansIn(JSON.parse(body) as Body))
    response.writeHead(isTraces ? 200 : 404, { 'Content-Type': 'application/json' }).end('{}')
  }
  const server = createServer((request, response) => void receive(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    headers,
    text: () => text,
    async find(what, isWanted) {
      await eventually(what, async () => spans.some(isWanted))
      return spans.find(isWanted) as ReceivedSpan
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const plainValue = ({ stringValue, intValue, doubleValue, boolValue }: Value) =>
  stringValue ?? (intValue === undefined ? (doubleValue ?? boolValue ?? '') : Number(intValue))

const attributesOf = (list: readonly Attribute[]) =>
  Object.fromEntries(list.map(({ key, value }) => [key, plainValue(value)]))

const spansIn = ({ resourceSpans }: Body): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(attributesOf(resource.attributes)['service.name'])
    return scopeSpans.flatMap(scope =>
      scope.spans.map(({ name, kind, traceId, spanId, parentSpanId, attributes, status }) => ({
        service,
        name,
        kind: kinds[kind] ?? 'internal',
        traceId,
        spanId,
        parentSpanId: parentSpanId || undefined,
        attributes: attributesOf(attributes),
        isError: status.code === 2,
      })),
    )
  })
