// Opens tracing if a collector is configured. Its libraries are loaded only then.

import type { Logger } from 'pino'
import { openExportLog } from './export-log.ts'
import { readTracingSettings, type TracingInput } from './settings.ts'
import type { Tracing } from './tracing.ts'

type OpenOptions = TracingInput & { readonly log: Pick<Logger, 'info' | 'warn'>; readonly now: () => number }

/** Returns undefined if tracing is off. Throws UsageError for invalid settings. */
export async function openTracing({ log, now, ...input }: OpenOptions): Promise<Tracing | undefined> {
  const settings = readTracingSettings(input)
  if (!settings) return undefined
  const { openOtlpTracing } = await import('./otlp.ts')
  return openOtlpTracing(settings, { now, random: Math.random, exportLog: openExportLog(log, now) })
}
