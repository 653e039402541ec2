// Asks before something is lost. Commands that take things away call it.

import { type Io, UsageError } from '../host/command.ts'

/** Throws where the answer is not yes, or nobody can be asked. */
export async function confirm(io: Io, question: string, isSure: boolean): Promise<void> {
  if (isSure) return
  if (!io.ask) throw new UsageError([`${question} Nobody can be asked here: --yes says so`])
  const answer = await io.ask(`${question} [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error('nothing was done')
}
