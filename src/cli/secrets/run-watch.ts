// `platform run --watch`: restarts the program when one of its secrets changes.

import { follow } from '../../client/list-watch.ts'
import type { Io } from '../../host/command.ts'
import type { Started } from '../../host/machine.ts'
import { openSession, type SessionFlags } from '../session.ts'
import { reconnectWarnings } from '../watch-reconnect.ts'
import type { Source, Values } from './environment.ts'
import { secretKind, type Where } from './secret.ts'
import { allValues } from './secret-values.ts'

/** Time between SIGTERM and SIGKILL. */
const killAfterMs = 5000
const retryAfterMs = 5000

type WatchFlags = Where & SessionFlags
type Options = {
  readonly first: Values
  /** Reads the values from the service; throws if it is unreachable. */
  readonly read: () => Promise<Values>
  readonly start: (values: Values) => Promise<Started>
}

/** Returns when the program exits by itself. If the service fails, the program keeps running with its values. */
export async function runWatched(io: Io, flags: WatchFlags, { first, read, start }: Options): Promise<number> {
  let values = first
  const ending = new AbortController()
  let changed = () => {}
  const refresh = async () => {
    const next = await read()
    const isChanged = !isSame(allValues(values), allValues(next))
    values = next
    if (isChanged) changed()
    return next.sources
  }
  void watchAll(io, flags, { sources: first.sources, signal: ending.signal, refresh })
  try {
    for (;;) {
      const program = await start(values)
      const again = new Promise<'again'>(resolve => {
        changed = () => resolve('again')
      })
      const outcome = await Promise.race([program.ended, again])
      if (outcome !== 'again') return outcome
      io.err('platform: a value changed; restarting the program\n')
      program.kill('SIGTERM')
      const timer = setTimeout(() => program.kill('SIGKILL'), killAfterMs)
      await program.ended.finally(() => clearTimeout(timer))
    }
  } finally {
    ending.abort()
  }
}

const isSame = (a: ReadonlyMap<string, Buffer>, b: ReadonlyMap<string, Buffer>) =>
  a.size === b.size && [...a].every(([name, value]) => b.get(name)?.equals(value))

type Watched = Pick<Values, 'sources'> & {
  readonly signal: AbortSignal
  readonly refresh: () => Promise<Values['sources']>
}

/** Warns once per cause. Every retry opens a new session, so a new sign-in in another terminal takes effect. */
async function watchAll(io: Io, flags: WatchFlags, { sources, signal, refresh }: Watched): Promise<void> {
  let lastWarning = ''
  const kind = secretKind(flags)
  const failed = async (error: unknown) => {
    const message = (error as Error).message
    if (message !== lastWarning) io.err(`platform: warning: cannot watch, retrying: ${message}\n`)
    lastWarning = message
    await new Promise(resolve => setTimeout(resolve, retryAfterMs).unref())
  }
  const warnings = reconnectWarnings(io)
  const watchOne = async ({ name, namespace }: Source) => {
    while (!signal.aborted)
      try {
        const session = await openSession(io, flags)
        const known = [{ apiVersion: kind.apiVersion, kind: kind.kind, metadata: { namespace, name } }]
        const selection = { namespace, fieldSelector: `metadata.name=${name}`, signal, known, ...warnings }
        try {
          for await (const { type } of follow(session.resources, kind, selection))
            if (type !== 'DELETED') await refresh()
            else
              io.err(
                `platform: warning: ${name} was deleted or access was revoked; the program keeps its current values\n`,
              )
        } finally {
          session.close()
        }
      } catch (error) {
        await failed(error)
      }
  }
  // Values from a copy have no sources: read them once the service is reachable.
  let known = sources
  while (!known.length && !signal.aborted)
    try {
      known = await refresh()
    } catch (error) {
      await failed(error)
    }
  await Promise.all(known.map(watchOne))
}
