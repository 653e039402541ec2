// `platform run --watch`: follows the secrets of a running program and starts it anew when a value changes. run.ts calls it.

import { follow } from '../../client/list-watch.ts'
import type { Io } from '../../host/command.ts'
import type { Started } from '../../host/machine.ts'
import { openSession, type SessionFlags } from '../session.ts'
import { lostTo } from '../watch-reconnect.ts'
import type { Source, Values } from './environment.ts'
import { secretKind, type Where } from './secret.ts'

/** A program that does not end when it is asked to is ended. */
const patience = 5000
const tryAgain = 5000

type Asked = Where & SessionFlags
type Options = {
  readonly first: Values
  /** The values as the service has them now; throws where it is away. */
  readonly read: () => Promise<Values>
  readonly start: (values: Values['values']) => Promise<Started>
}

/** The program's own end is the end; whatever happens to the service, it goes on with what it has. */
export async function followed(io: Io, asked: Asked, { first, read, start }: Options): Promise<number> {
  let values = first.values
  const ending = new AbortController()
  let changed = () => {}
  const look = async () => {
    const { values: next, sources } = await read()
    if (isSame(values, next)) return sources
    values = next
    changed()
    return sources
  }
  void watchAll(io, asked, { sources: first.sources, signal: ending.signal, look })
  try {
    for (;;) {
      const program = await start(values)
      const again = new Promise<'again'>(resolve => {
        changed = () => resolve('again')
      })
      const outcome = await Promise.race([program.ended, again])
      if (outcome !== 'again') return outcome
      io.err('platform: a value changed; the program is started anew\n')
      program.kill('SIGTERM')
      const timer = setTimeout(() => program.kill('SIGKILL'), patience)
      await program.ended.finally(() => clearTimeout(timer))
    }
  } finally {
    ending.abort()
  }
}

const isSame = (a: Values['values'], b: Values['values']) =>
  a.size === b.size && [...a].every(([name, value]) => b.get(name)?.equals(value))

type Watched = Pick<Values, 'sources'> & {
  readonly signal: AbortSignal
  readonly look: () => Promise<Values['sources']>
}

/** A key that ended is told once; whoever signs in again in another window is heard of, for every try reads the key anew. */
async function watchAll(io: Io, asked: Asked, { sources, signal, look }: Watched): Promise<void> {
  let told = ''
  const kind = secretKind(asked)
  const failed = async (error: unknown) => {
    const message = (error as Error).message
    if (message !== told) io.err(`platform: warning: changes are not followed at the moment: ${message}\n`)
    told = message
    await new Promise(resolve => setTimeout(resolve, tryAgain).unref())
  }
  const lost = lostTo(io, 'followed')
  const watchOne = async ({ name, namespace }: Source) => {
    while (!signal.aborted)
      try {
        const session = await openSession(io, asked)
        const selection = { namespace, fieldSelector: `metadata.name=${name}`, signal, ...lost }
        try {
          for await (const { type } of follow(session.resources, kind, selection))
            if (type !== 'DELETED') await look()
            else
              io.err(
                `platform: warning: ${name} was deleted, or may not be read any more; the program goes on with the values it has\n`,
              )
        } finally {
          session.close()
        }
      } catch (error) {
        await failed(error)
      }
  }
  // What came from a copy names no sources: they are known once the service answers.
  let known = sources
  while (!known.length && !signal.aborted)
    try {
      known = await look()
    } catch (error) {
      await failed(error)
    }
  await Promise.all(known.map(watchOne))
}
