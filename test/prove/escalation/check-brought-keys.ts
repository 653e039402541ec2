// Secrets that clients choose for access keys: only administrators do, each has one key, and no dry run tells whether it exists (D12, D62).

import { requestOf } from './encode.ts'
import type { Known } from './model.ts'
import { kinds, type Obj } from './objects.ts'
import type { Prover } from './prover.ts'
import type { Outcome, Step } from './step.ts'
import { Violation } from './violation.ts'

/** The secret that the client chose. */
export function chosenIn({ kind, sub, body }: Step): string | undefined {
  if (kind !== kinds.OwnedAccessKey || sub !== '') return undefined
  if (!Array.isArray(body)) return (body as Obj | undefined)?.spec?.key
  return body.find(({ path }: { path?: string }) => path === '/spec/key')?.value as string | undefined
}

/** For accepted requests. */
export function checkBroughtKeys({ model, server }: Prover, { step, before, changes }: Outcome): void {
  if (chosenIn(step) !== undefined && !before.administers)
    throw new Violation('brought keys', `${step.what} of key "${step.name}" chose its secret`)
  const now = server.now()
  for (const { after } of changes) {
    if (after?.kind !== kinds.OwnedAccessKey) continue
    const own = digestsOf(after, now)
    const other = model.of(kinds.OwnedAccessKey).find(one => one.uid !== after.uid && shares(digestsOf(one, now), own))
    if (other)
      throw new Violation('brought keys', `${step.what} gave key "${after.name}" a secret of key "${other.name}"`)
  }
}

const shares = (some: readonly string[], others: readonly string[]) => some.some(one => others.includes(one))

/** Of the current secret, and of the one before a rotation while it works. */
function digestsOf({ object: { status = {} } }: Known, now: number): string[] {
  const { digest, previous } = status as { digest?: string; previous?: { digest: string; until: string } }
  const isKept = previous !== undefined && Date.parse(previous.until) > now
  return [...(digest ? [digest] : []), ...(isKept ? [previous.digest] : [])]
}

/** Nobody has it, because only dry runs send it. */
const unused = 'unused'.padEnd(40, '-')

/** The server answers a secret of another key like one that nobody has. Only an administrator who claims it learns more. */
export async function checkSilence({ server }: Prover, { step, before, answer, accepted }: Outcome): Promise<void> {
  const chosen = chosenIn(step)
  if (chosen === undefined || !(step.dryRun || (!accepted && !before.administers))) return
  const { body, ...request } = requestOf({ ...step, dryRun: true })
  const other = await server.ask({ ...request, body: String(body).replaceAll(chosen, unused) })
  const isSame = other.code === answer.code && (accepted || other.text === answer.text)
  if (!isSame)
    throw new Violation(
      'brought keys',
      `${step.what} of key "${step.name}" got ${answer.code}, and ${other.code} with a secret that nobody has`,
    )
}
