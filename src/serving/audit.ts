// The audit trail: decides what of each request is recorded and hands the lines on. The pipeline calls it at its stages.

import { type Caller, systemCaller } from '../api/caller.ts'
import { ApiError } from '../api/errors.ts'
import type { Question } from '../api/kind.ts'
import { eventOf, type Happening, isAboutKeys, requesterOf } from './audit-event.ts'
import { type OwnWrite, ownEvent, questionOf } from './audit-internal.ts'
import { compilePolicy, type Level, type Policy, type Stage } from './audit-policy.ts'
import type { Hash } from './audit-redact.ts'
import type { Sink } from './audit-sink.ts'
import type { Exchange, Request, Trail } from './exchange.ts'

export interface Audit {
  /** After authentication, whether it succeeded or not: decides, and records RequestReceived. */
  begin(exchange: Exchange, question: Question, caller: Caller | undefined): Trail
  /** A watch has begun to answer. */
  started(trail: Trail, code: number): void
  /** The answer is out. Records denials, and writes of keys and tokens, whatever the policy says. */
  complete(trail: Trail, code: number, error: unknown): void
  /** A write of the server itself, which no request asked for. */
  own(write: OwnWrite): void
  /** Whether a request, when it is over, leaves a line whatever comes of it. */
  isDue(trail: Trail): boolean
  /** Records that a write is about to be made, and answers whether that is on record. */
  announce(trail: Trail): Promise<boolean>
  /** Records what came of a write before it is answered, and answers whether that is on record. */
  conclude(trail: Trail, code: number): Promise<boolean>
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
  /** False: the queue is full, and the line is lost. */
  const record = (trail: Trail, level: Level, what: Omit<Happening, 'level'>): boolean => {
    counted(1)
    return sink.write(
      JSON.stringify(eventOf(trail, { ...what, level }, { hash, sources: sourcesOf(trail.exchange.request) })),
    )
  }
  const isDue = (trail: Trail) => trail.decision.level !== 'None' || isAboutKeys(trail)
  const levelOf = ({ decision: { level } }: Trail): Level => (level === 'None' ? 'Metadata' : level)
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
        noted: undefined,
        sent: undefined,
        sentAs: 'object',
        answer: undefined,
        isOver: false,
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
      if (trail.isOver) return
      const stage = error === undefined || error instanceof ApiError ? 'ResponseComplete' : 'Panic'
      const isNeeded = isDenial(trail, code) || (isAboutKeys(trail) && code < 300)
      if (isNeeded || isWanted(trail, stage)) record(trail, levelOf(trail), { stage, at: now(), code, error })
    },
    own(write) {
      const { level } = decide(questionOf(write), systemCaller)
      if (level === 'None' && !isAboutKeys({ question: questionOf(write) })) return
      counted(1)
      sink.write(JSON.stringify(ownEvent(write, now(), hash)))
    },
    isDue,
    async announce(trail) {
      const received = { stage: 'RequestReceived', at: trail.received, code: undefined, error: undefined } as const
      // The policy may have recorded it already.
      const isTaken = isWanted(trail, 'RequestReceived') || record(trail, levelOf(trail), received)
      return isTaken && sink.settled()
    },
    async conclude(trail, code) {
      trail.isOver = true
      const what = { stage: 'ResponseComplete', at: now(), code, error: undefined } as const
      return record(trail, levelOf(trail), what) && sink.settled()
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
