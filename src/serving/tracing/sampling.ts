// Decides which traces are recorded. Callers may ask for a trace, but only so many per second.

import type { TraceContext } from './traceparent.ts'

export type SamplingSettings = {
  /** The share of traces to record, from 0 to 1. */
  readonly ratio: number
  /** Whether the sampled flag of a caller decides. */
  readonly isParentBased: boolean
}

type Dependencies = {
  /** Milliseconds. */
  readonly now: () => number
  /** From 0 to 1. */
  readonly random: () => number
}

/** `parent`: the context that a caller sent. */
export type Sample = (traceId: string, parent: TraceContext | undefined) => boolean

/**
 * Traces per second that callers can cause, beyond the share that is recorded anyway. Anybody can send a sampled flag, or choose a
 * trace id that the ratio selects, without credentials.
 */
export const requestedPerSecond = 50

export function openSampler({ ratio, isParentBased }: SamplingSettings, { now, random }: Dependencies): Sample {
  let tokens = requestedPerSecond
  let filledAt = now()
  const take = (): boolean => {
    const time = now()
    tokens = Math.min(requestedPerSecond, tokens + (Math.max(0, time - filledAt) * requestedPerSecond) / 1000)
    filledAt = time
    if (tokens < 1) return false
    tokens--
    return true
  }
  return (traceId, parent) => {
    if (!parent) return isSelected(traceId, ratio)
    const isWanted = isParentBased ? parent.isSampled : isSelected(traceId, ratio)
    if (!isWanted || ratio === 1) return isWanted
    return take() || random() < ratio
  }
}

const wholeRange = 2 ** 56

/** By the last 56 bits of the trace id, so that other programs with the same ratio select the same traces. */
const isSelected = (traceId: string, ratio: number): boolean =>
  ratio > 0 && Number.parseInt(traceId.slice(-14), 16) >= (1 - ratio) * wholeRange
