// The audit trail: decides what of each request is recorded and hands the lines on. The pipeline calls it at its stages.

import type { Caller } from '../api/caller.ts'
import { ApiError } from '../api/errors.ts'
import type { Question } from '../api/kind.ts'
import { eventOf, type Happening, isIssuing, requesterOf, type Trail } from './audit-event.ts'
import { compilePolicy, type Level, type Policy, type Stage } from './audit-policy.ts'
import type { Hash } from './audit-redact.ts'
import type { Sink } from './audit-sink.ts'
import type { Exchange, Request } from './exchange.ts'

export interface Audit {
  /** After authentication, whether it succeeded or not: decides, and records RequestReceived. */
  begin(exchange: Exchange, question: Question, caller: Caller | undefined): Trail
  /** A watch has begun to answer. */
  started(trail: Trail, code: number): void
  /** The answer is out. Records denials, and writes of keys and tokens, whatever the policy says. */
  complete(trail: Trail, code: number, error: unknown): void
  /** Why lines do not get out at the moment, for those who want writes refused then. */
  readonly failure: string | undefined
  flush(): Promise<void>
  close(): Promise<void>
}

export type AuditOptions = {
  readonly policy: Policy
  readonly sink: Sink
  readonly hash: Hash
  /** Milliseconds; a fraction is recorded to the microsecond. */
  readonly now: () => number
  /** The addresses a request came through that can be relied on, the client's first. */
  readonly sourcesOf: (request: Request) => readonly string[]
  /** apiserver_audit_event_total */
  readonly counted: (events: number) => void
}

export function openAudit({ policy, sink, hash, now, sourcesOf, counted }: AuditOptions): Audit {
  const decide = compilePolicy(policy)
  const record = (trail: Trail, level: Level, what: Omit<Happening, 'level'>): void => {
    counted(1)
    sink.write(JSON.stringify(eventOf(trail, { ...what, level }, { hash, sources: sourcesOf(trail.exchange.request) })))
  }
  const isWanted = ({ decision }: Trail, stage: Stage) => decision.level !== 'None' && !decision.omitStages.has(stage)
  return {
    begin(exchange, question, caller) {
      const decision = decide(question, requesterOf(exchange, caller))
      const received = now()
      const trail: Trail = {
        exchange,
        question,
        caller,
        decision,
        received,
        kind: undefined,
        impersonated: undefined,
        allowed: undefined,
        reason: '',
        sent: undefined,
        answer: undefined,
      }
      if (isWanted(trail, 'RequestReceived'))
        record(trail, decision.level, { stage: 'RequestReceived', at: received, code: undefined, error: undefined })
      return trail
    },
    started(trail, code) {
      if (isWanted(trail, 'ResponseStarted'))
        record(trail, trail.decision.level, { stage: 'ResponseStarted', at: now(), code, error: undefined })
    },
    complete(trail, code, error) {
      const stage = error === undefined || error instanceof ApiError ? 'ResponseComplete' : 'Panic'
      const isDue = isDenial(trail, code) || isIssuing(trail, code)
      if (!isDue && !isWanted(trail, stage)) return
      const { level } = trail.decision
      record(trail, level === 'None' ? 'Metadata' : level, { stage, at: now(), code, error })
    },
    get failure() {
      return sink.failure
    },
    flush: () => sink.flush(),
    close: () => sink.close(),
  }
}

/** Some denials look like something else: what is not theirs to know of is missing to them (D14). */
const isDenial = ({ allowed }: Trail, code: number) => allowed === false || code === 401 || code === 403
