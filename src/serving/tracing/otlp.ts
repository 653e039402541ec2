// Records spans with the OpenTelemetry SDK and sends them to a collector over OTLP/HTTP. Loaded only if tracing is on.

import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Context,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { ExportLog } from './export-log.ts'
import { isQuiet, requestAttributes } from './http-attributes.ts'
import { openSampler, type Sample } from './sampling.ts'
import type { TracingSettings } from './settings.ts'
import { readTraceparent, type TraceContext, writeTraceparent } from './traceparent.ts'
import type { Attributes, Outcome, Span, Tracing } from './tracing.ts'

/** Spans that wait for the collector. Further ones are dropped: requests never wait for it. */
const maxQueue = 2048
const batch = 512
const sendEvery = 2000
const sendWithin = 5000
/** An unreachable collector must not delay the end of a program. */
const closeWithin = 3000

type Dependencies = {
  readonly now: () => number
  readonly random: () => number
  readonly exportLog: ExportLog
}

export function openOtlpTracing(settings: TracingSettings, { now, random, exportLog }: Dependencies): Tracing {
  const { url, headers, resource, sampling } = settings
  const exporter = new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: sendWithin })
  const processor = new BatchSpanProcessor({
    exporter: reporting(exporter, exportLog),
    maxQueueSize: maxQueue,
    maxExportBatchSize: batch,
    scheduledDelayMillis: sendEvery,
    exportTimeoutMillis: sendWithin,
  })
  const provider = new TracerProvider({
    resource: resourceFromAttributes(resource),
    sampler: samplerFrom(openSampler(sampling, { now, random })),
    spanProcessors: [processor],
  })
  const tracer = provider.getTracer('platform')
  const current = new AsyncLocalStorage<Span>()

  const root = (name: string, attributes: Attributes, kind: SpanKind, context: Context = ROOT_CONTEXT): Span =>
    wrap(tracer, tracer.startSpan(name, { kind, attributes: { ...attributes } }, context))

  async function run<T>(span: Span, work: () => Promise<T>): Promise<T> {
    try {
      const result = await current.run(span, work)
      span.end()
      return result
    } catch (error) {
      span.end({ attributes: { 'error.type': errorType(error) }, isError: true })
      throw error
    }
  }

  return {
    server({ request, path }) {
      if (isQuiet(path)) return undefined
      const attributes = requestAttributes(request)
      const parent = readTraceparent(request.headers['traceparent'])
      const name = String(attributes['http.request.method'])
      return root(name, attributes, SpanKind.SERVER, parent && contextOf(parent))
    },
    within: (span, work) => current.run(span, work),
    root: (name, attributes, work) => run(root(name, attributes, SpanKind.INTERNAL), work),
    part: (name, work) => {
      const span = current.getStore()
      return span ? run(span.child(name), work) : work()
    },
    sending: fetch => async (url, init) => {
      const outer = current.getStore()
      if (!outer) return fetch(url, init)
      const { method = 'GET', headers } = init
      const span = outer.child(method, 'client')
      return run(span, async () => {
        const response = await fetch(url, {
          ...init,
          headers: { ...(headers as { [name: string]: string }), traceparent: span.traceparent },
        })
        span.end({
          attributes: { 'http.request.method': method, 'http.response.status_code': response.status },
          isError: response.status >= 400,
        })
        return response
      })
    },
    async close() {
      const { promise: late, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, closeWithin)
      await Promise.race([provider.shutdown().catch(() => {}), late])
      clearTimeout(timer)
    },
  }
}

const contextOf = ({ traceId, spanId, isSampled }: TraceContext): Context =>
  trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
  })

function wrap(tracer: Tracer, span: OtelSpan): Span {
  const { traceId, spanId, traceFlags } = span.spanContext()
  const isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0
  const open = new Set<Span>()
  let isOver = false
  const self: Span = {
    traceId,
    traceparent: writeTraceparent({ traceId, spanId, isSampled }),
    child(name, kind = 'internal') {
      const context = trace.setSpan(ROOT_CONTEXT, span)
      const options = { kind: kind === 'client' ? SpanKind.CLIENT : SpanKind.INTERNAL }
      const inner = wrap(tracer, tracer.startSpan(name, options, context))
      open.add(inner)
      return inner
    },
    end(outcome = {}) {
      if (isOver) return
      isOver = true
      for (const inner of open) inner.end()
      if (isSampled) complete(span, outcome)
      span.end()
    },
  }
  return self
}

function complete(span: OtelSpan, { name, attributes = {}, isError }: Outcome): void {
  if (name !== undefined) span.updateName(name)
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) span.setAttribute(key, value)
  if (isError) span.setStatus({ code: SpanStatusCode.ERROR })
}

/** A word, never the message, which may contain anything. */
function errorType(error: unknown): string {
  const { code, reason } = error as { readonly code?: unknown; readonly reason?: unknown }
  for (const one of [reason, code]) if (typeof one === 'string' || typeof one === 'number') return String(one)
  return error instanceof Error ? error.name : 'unknown'
}

/** Parts of a span follow it. Only the start of a trace in this program is a decision. */
const samplerFrom = (sample: Sample): Sampler => ({
  shouldSample(context, traceId) {
    const parent = trace.getSpanContext(context)
    const isRecorded =
      parent && !parent.isRemote
        ? (parent.traceFlags & TraceFlags.SAMPLED) !== 0
        : sample(traceId, parent && { ...parent, isSampled: (parent.traceFlags & TraceFlags.SAMPLED) !== 0 })
    return { decision: isRecorded ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD }
  },
  toString: () => 'platform',
})

/** Reports whether the collector takes the spans. The library would only write to a log of its own. */
function reporting(exporter: SpanExporter, { worked, failed }: ExportLog): SpanExporter {
  return {
    export: (spans: ReadableSpan[], done: (result: ExportResult) => void) =>
      exporter.export(spans, result => {
        if (result.code === ExportResultCode.SUCCESS) worked()
        else failed(reasonOf(result.error))
        done(result)
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  }
}

/** Not the response of the collector, which may repeat what it received. */
function reasonOf(error: (Error & { readonly code?: number | string }) | undefined): string {
  const code = error?.code
  return typeof code === 'number' ? `it responded with ${code}` : String(code ?? error?.name ?? 'unknown')
}
