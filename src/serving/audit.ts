// Audit logging: decides what to record of each request, and queues the events. The request pipeline calls it at each stage.

import type { AuditLine } from '../api/audit-query.ts'
import { type Caller, systemCaller } from '../api/caller.ts'
import { ApiError } from '../api/errors.ts'
import type { Question } from '../api/kind.ts'
import { type EventInput, eventOf, isAboutKeys, requesterOf } from './audit-event.ts'
import { type InternalWrite, internalEvent, questionOf } from './audit-internal.ts'
import { compilePolicy, type Level, type Policy, type Stage } from './audit-policy.ts'
import type { Hash } from './audit-redact.ts'
import type { Sink } from './audit-sink.ts'
import type { AuditContext, Exchange, Request } from './exchange.ts'

export interface Audit {
  /** Call after authentication, successful or not. Decides what to record, and records RequestReceived. */
  begin(exchange: Exchange, question: Question, caller: Caller | undefined): AuditContext
  /** A watch has started its response. */
  started(context: AuditContext, code: number): void
  /** The response is complete. Always records denials, and writes of keys and tokens, independent of the policy. */
  complete(context: AuditContext, code: number, error: unknown): void
  /** Records a write of the server itself, without a request. */
  own(write: InternalWrite): void
  /** Whether the log gets an event for this request in any case, whatever its result. */
  isDue(context: AuditContext): boolean
  /** Records that a write is about to happen. Resolves with whether the event was written. */
  announce(context: AuditContext): Promise<boolean>
  /** Records the result of a write before the response. Resolves with whether the event was written. */
  conclude(context: AuditContext, code: number): Promise<boolean>
  /** Why events cannot be written at the moment. Servers that require auditing reject writes then. */
  readonly failure: string | undefined
  flush(): Promise<void>
  /** Resolves with whether all current events are written. */
  settled(): Promise<boolean>
  close(): Promise<void>
}

export type AuditOptions = {
  readonly policy: Policy
  readonly sink: Sink
  readonly hash: Hash
  /** Milliseconds; fractions are recorded down to the microsecond. */
  readonly now: () => number
  /** The trusted addresses of a request's path, the client first. */
  readonly sourcesOf: (request: Request) => readonly string[]
  /** Receives every event that is written, for watches of audit events. */
  readonly feed?: { push(event: AuditLine, line: string): void } | undefined
  /** apiserver_audit_event_total */
  readonly counted: (events: number) => void
}

export function openAudit({ policy, sink, hash, now, sourcesOf, feed, counted }: AuditOptions): Audit {
  const decide = compilePolicy(policy)
  /** False: the queue is full, and the line is lost. */
  const record = (context: AuditContext, level: Level, what: Omit<EventInput, 'level'>): boolean => {
    return write(eventOf(context, { ...what, level }, { hash, sources: sourcesOf(context.exchange.request) }))
  }
  const write = (event: object): boolean => {
    counted(1)
    const line = JSON.stringify(event)
    const isTaken = sink.write(line)
    if (isTaken) feed?.push(event, line)
    return isTaken
  }
  const isDue = (context: AuditContext) => context.decision.level !== 'None' || isAboutKeys(context)
  const levelOf = ({ decision: { level } }: AuditContext): Level => (level === 'None' ? 'Metadata' : level)
  const isWanted = ({ decision }: AuditContext, stage: Stage) =>
    decision.level !== 'None' && !decision.omitStages.has(stage)
  return {
    begin(exchange, question, caller) {
      const decision = decide(question, requesterOf(exchange, caller))
      const received = now()
      const context: AuditContext = {
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
      if (isWanted(context, 'RequestReceived'))
        record(context, decision.level, { stage: 'RequestReceived', at: received, code: undefined, error: undefined })
      return context
    },
    started(context, code) {
      if (isWanted(context, 'ResponseStarted'))
        record(context, context.decision.level, { stage: 'ResponseStarted', at: now(), code, error: undefined })
    },
    complete(context, code, error) {
      if (context.isOver) return
      const stage = error === undefined || error instanceof ApiError ? 'ResponseComplete' : 'Panic'
      const isNeeded = isDenial(context, code) || (isAboutKeys(context) && code < 300)
      if (isNeeded || isWanted(context, stage)) record(context, levelOf(context), { stage, at: now(), code, error })
    },
    own(internalWrite) {
      const question = questionOf(internalWrite)
      if (decide(question, systemCaller).level === 'None' && !isAboutKeys({ question })) return
      write(internalEvent(internalWrite, now(), hash))
    },
    isDue,
    async announce(context) {
      const received = { stage: 'RequestReceived', at: context.received, code: undefined, error: undefined } as const
      // The policy may have recorded it already.
      const isTaken = isWanted(context, 'RequestReceived') || record(context, levelOf(context), received)
      return isTaken && sink.settled()
    },
    async conclude(context, code) {
      context.isOver = true
      const what = { stage: 'ResponseComplete', at: now(), code, error: undefined } as const
      return record(context, levelOf(context), what) && sink.settled()
    },
    get failure() {
      return sink.failure
    },
    flush: () => sink.flush(),
    settled: () => sink.settled(),
    close: () => sink.close(),
  }
}

/** Some denials are 404, because the caller may not know that the object exists (D14). */
const isDenial = ({ allowed }: AuditContext, code: number) => allowed === false || code === 401 || code === 403
