// Reads and writes the header `traceparent` of W3C Trace Context.

export type TraceContext = { readonly traceId: string; readonly spanId: string; readonly isSampled: boolean }

const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const zeros = /^0+$/

/** Returns undefined for an invalid value, which counts as absent. */
export function readTraceparent(value: string | readonly string[] | undefined): TraceContext | undefined {
  // A value of a later version may be longer. Nobody needs one of any length.
  if (typeof value !== 'string' || value.length > 128) return undefined
  const [, version, traceId = '', spanId = '', flags = '', rest] = shape.exec(value) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  if (zeros.test(traceId) || zeros.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export const writeTraceparent = ({ traceId, spanId, isSampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
