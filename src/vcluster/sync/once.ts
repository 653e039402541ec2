// `--once` and `--dry-run`: brings everything in order, or prints what that would take, and ends. sync.ts calls it.

import { setTimeout as startTimer } from 'node:timers'
import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import { writeYaml } from '../../api/codec.ts'
import type { Json } from '../../api/object.ts'
import { MissingApiError } from './api-errors.ts'
import type { EndpointSync } from './endpoints-controller.ts'
import { toldOf } from './failure.ts'
import { type Opened, type OptionsFor, timeoutOf } from './flags.ts'
import { aborted } from './reload.ts'
import { type Told, withoutEffect } from './scoped-client.ts'
import { openSync } from './sync.ts'

/** Exit code 0: all in order. 1: something could not be brought in order. */
export async function syncOnce(opened: Opened, options: OptionsFor, signal: AbortSignal, log: Logger): Promise<number> {
  const { asked, config, io } = opened
  if (!config.sync.toHost.endpoints.enabled) return 0
  const timeUp = new AbortController()
  // One that keeps the process alive: while a server is tried again, nothing else may.
  const timer = startTimer(() => timeUp.abort(), timeoutOf(asked.timeout) * 1000)
  const limit = AbortSignal.any([signal, timeUp.signal])
  const late = new Promise<void>(resolve => limit.addEventListener('abort', () => resolve()))
  const tell = (side: string) => (write: Told) => io.out(printed(side, write))
  const { observer, ...base } = options(config, limit)
  /** Another kind of server is not going to become the right one. */
  let wrong: MissingApiError | undefined
  let last: unknown
  const failed: typeof observer.failed = (what, error) => {
    if (!limit.aborted) last = error
    if (!(error instanceof MissingApiError)) return observer.failed(what, error)
    wrong ??= error
    timeUp.abort()
  }
  const dry = asked['dry-run']
    ? {
        virtual: withoutEffect(base.virtual, tell('the virtual cluster')),
        host: withoutEffect(base.host, tell('the host')),
      }
    : {}
  const sync = await openSync({ ...base, ...dry, observer: { ...observer, failed } }).catch(aborted)
  const tries = asked['dry-run'] ? 1 : 5
  if (sync) {
    await Promise.race([sync.ready, late])
    do await Promise.race([sync.settled(), late])
    while (!limit.aborted && (await isTryingAgain(sync, tries)))
    await sync.stop()
  }
  clearTimeout(timer)
  const failures = sync?.failures() ?? []
  for (const { name, error } of failures) io.err(`platform: ${name}: ${(error as Error).message}\n`)
  if (wrong) io.err(`platform: ${toldOf(opened, wrong)}\n`)
  else if (limit.aborted && !signal.aborted)
    io.err(
      `platform: not done within ${asked.timeout}${/\d$/.test(asked.timeout) ? ' s' : ''}${last instanceof Error ? `: ${last.message}` : ''}\n`,
    )
  log.flush()
  return failures.length || limit.aborted ? 1 : 0
}

async function isTryingAgain(sync: EndpointSync, tries: number): Promise<boolean> {
  const isWaiting = sync.failures().some(({ attempts }) => attempts < tries)
  if (isWaiting) await setTimeout(50)
  return isWaiting
}

function printed(side: string, { verb, kind, ref, object }: Told): string {
  const head = `# ${verb} ${kind.singular} ${ref.namespace}/${ref.name} on ${side}\n`
  return `---\n${head}${object === undefined ? '' : writeYaml(object as Json)}`
}
