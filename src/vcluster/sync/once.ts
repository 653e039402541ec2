// `--once` and `--dry-run`: syncs everything once and reports it, or prints the writes, and exits.

import { setTimeout as startTimer } from 'node:timers'
import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import { writeYaml } from '../../api/codec.ts'
import type { Json } from '../../api/object.ts'
import { isSyncEnabled } from '../config/schema.ts'
import { MissingApiError } from './api-errors.ts'
import { type DryRunWrite, dryRunClient } from './dry-run-client.ts'
import { describeError } from './failure.ts'
import { type Opened, type OptionsFor, timeoutOf } from './flags.ts'
import { aborted } from './reload.ts'
import { openSync, type Syncer } from './sync.ts'
import { openReportRecorder, reportText, type SyncReport } from './sync-report.ts'

/** Returns exit code 0 if everything is in sync, otherwise 1. */
export async function syncOnce(opened: Opened, options: OptionsFor, signal: AbortSignal, log: Logger): Promise<number> {
  const { flags, config, io } = opened
  const recorder = openReportRecorder(flags.name)
  const printReport = (report: SyncReport) => {
    if (!flags['dry-run'])
      io.out(flags.output === 'json' ? `${JSON.stringify(report, undefined, 2)}\n` : reportText(report))
  }
  if (!isSyncEnabled(config)) {
    printReport(recorder.report(undefined, true))
    return 0
  }
  const timeUp = new AbortController()
  // This timer keeps the process alive, because nothing else may be pending between two retries.
  const timer = startTimer(() => timeUp.abort(), timeoutOf(flags.timeout) * 1000)
  const limit = AbortSignal.any([signal, timeUp.signal])
  const late = new Promise<void>(resolve => limit.addEventListener('abort', () => resolve()))
  const print = (side: string) => (write: DryRunWrite) => io.out(printed(side, write))
  const { observer, ...base } = options(config, limit)
  /** Not retried: the server does not serve the Kubernetes API. */
  let wrong: MissingApiError | undefined
  let last: unknown
  const failed: typeof observer.failed = (what, error) => {
    if (!limit.aborted) last = error
    if (!(error instanceof MissingApiError)) return observer.failed(what, error)
    wrong ??= error
    timeUp.abort()
  }
  const clients = flags['dry-run']
    ? {
        virtual: dryRunClient(base.virtual, print('the virtual cluster')),
        host: dryRunClient(base.host, print('the host')),
      }
    : { virtual: recorder.observe('virtual', base.virtual), host: recorder.observe('host', base.host) }
  const sync = await openSync({ ...base, ...clients, observer: { ...observer, failed } }).catch(aborted)
  const tries = flags['dry-run'] ? 1 : 5
  if (sync) {
    await Promise.race([sync.ready, late])
    do await Promise.race([sync.settled(), late])
    while (!limit.aborted && (await hasRetries(sync, tries)))
    await sync.stop()
  }
  clearTimeout(timer)
  const failures = sync?.failures() ?? []
  for (const { name, error } of failures) io.err(`platform: ${name}: ${(error as Error).message}\n`)
  if (wrong) io.err(`platform: ${describeError(opened, wrong)}\n`)
  else if (limit.aborted && !signal.aborted)
    io.err(
      `platform: timed out after ${flags.timeout}${/\d$/.test(flags.timeout) ? ' s' : ''}${last instanceof Error ? `: ${last.message}` : ''}\n`,
    )
  printReport(recorder.report(sync, !limit.aborted))
  log.flush()
  return failures.length || limit.aborted ? 1 : 0
}

async function hasRetries(sync: Syncer, tries: number): Promise<boolean> {
  const isWaiting = sync.failures().some(({ attempts }) => attempts < tries)
  if (isWaiting) await setTimeout(50)
  return isWaiting
}

function printed(side: string, { verb, kind, ref, object }: DryRunWrite): string {
  const head = `# ${verb} ${kind.singular} ${ref.namespace}/${ref.name} on ${side}\n`
  return `---\n${head}${object === undefined ? '' : writeYaml(object as Json)}`
}
