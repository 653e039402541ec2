// Asks for confirmation before a destructive change.

import { type Io, UsageError } from '../host/command.ts'

/** Throws if the answer is not yes, or if there is no terminal to ask at. */
export async function confirm(io: Io, question: string, isSure: boolean): Promise<void> {
  if (isSure) return
  if (!io.ask) throw new UsageError([`${question} Use --yes to confirm without a terminal`])
  const answer = await io.ask(`${question} [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error('cancelled; nothing was changed')
}
