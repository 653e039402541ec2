// Opens the audit log from the settings: policy, target and metrics.

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { UsageError } from '../host/command.ts'
import { fileProblem, writeProblem } from '../host/fs-errors.ts'
import { type Audit, openAudit } from './audit.ts'
import type { WritableFeed } from './audit-feed.ts'
import { openFileDestination } from './audit-file.ts'
import { defaultPolicy, type Policy } from './audit-policy.ts'
import { hashWith, saltIn } from './audit-redact.ts'
import { openSink, type Sink, streamDestination } from './audit-sink.ts'
import type { Metrics } from './metrics.ts'
import type { UnknownKeyLimiter } from './unknown-key-limiter.ts'

/** The settings of the audit log, as the server's settings and a gateway's file name them. */
export type AuditSettings = {
  readonly 'audit.log': string
  readonly 'audit.policy': string
  readonly 'audit.maxSize': number
  readonly 'audit.maxFiles': number
  readonly 'audit.maxAge': number
  readonly 'audit.refuseWrites': boolean
}

export type AuditLogOptions = {
  readonly settings: AuditSettings
  readonly directory: string
  /** Salt of the hashes; default: the one in the directory. */
  readonly salt?: Buffer
  readonly metrics: Metrics
  readonly sourcesOf: UnknownKeyLimiter['sourcesOf']
  readonly now: () => number
  /** Receives the events, for watches; absent: nobody watches them. */
  readonly feed?: WritableFeed
  readonly failed: (what: string, error: unknown) => void
}

/** The file with the salt of the hashes. With it, guesses can be tested against the log. */
export const saltFileIn = (directory: string) => resolve(directory, 'audit.salt')

const queueBytes = 64 * 1024 * 1024
const batchBytes = 256 * 1024
const gatherFor = 10
const day = 24 * 3600 * 1000

export async function openAuditLog(options: AuditLogOptions): Promise<Audit> {
  const policy = await policyOf(options.settings)
  const { settings, directory } = options
  const sink = await openAuditSink(options).catch(error => {
    throw new UsageError([`audit.log: ${writeProblem(auditFileOf(settings, directory), error)}`])
  })
  return auditInto(sink, policy, options)
}

export function auditInto(sink: Sink, policy: Policy, options: Omit<AuditLogOptions, 'settings' | 'failed'>): Audit {
  const { directory, salt, metrics, sourcesOf, now, feed } = options
  return openAudit({
    policy,
    sink,
    hash: hashWith(salt ?? saltIn(saltFileIn(directory), true)),
    now,
    sourcesOf,
    feed,
    counted: metrics.counter('apiserver_audit_event_total', 'Audit events generated.')({}),
  })
}

/** The file of the log, if the setting names one. */
export const auditFileOf = (settings: Pick<AuditSettings, 'audit.log'>, directory: string) =>
  resolve(directory, settings['audit.log'])

/** Rejects with UsageError. */
export const policyOf = async (settings: AuditSettings): Promise<Policy> =>
  settings['audit.log'] === 'off' ? { rules: [{ level: 'None' }] } : policyIn(settings['audit.policy'])

const nowhere: Sink = {
  write: () => true,
  failure: undefined,
  flush: async () => {},
  settled: async () => true,
  close: async () => {},
}

/** Throws UsageError. */
export async function policyIn(file: string): Promise<Policy> {
  if (file === '') return defaultPolicy
  const { PolicyError, readPolicy } = await import('./audit-policy-file.ts')
  try {
    return readPolicy(readFileSync(file))
  } catch (error) {
    const problems =
      error instanceof PolicyError ? error.problems.map(text => `${file}: ${text}`) : [fileProblem(file, error)]
    throw new UsageError(problems.map(text => `audit.policy: ${text}`))
  }
}

/** Rejects if the destination cannot be opened. */
export async function openAuditSink({ settings, directory, metrics, now, failed }: AuditLogOptions): Promise<Sink> {
  if (settings['audit.log'] === 'off') return nowhere
  const maxBytes = settings['audit.maxSize'] * 1024 * 1024
  const destination =
    settings['audit.log'] === '-'
      ? streamDestination(process.stdout)
      : await openFileDestination({
          file: auditFileOf(settings, directory),
          maxBytes,
          maxFiles: settings['audit.maxFiles'],
          maxAge: settings['audit.maxAge'] * day,
          sync: settings['audit.refuseWrites'],
          now,
          failed,
        })
  return openSink({
    destination,
    queueBytes,
    batchBytes,
    // If the response waits for the line, the line is written at once.
    gatherFor: settings['audit.refuseWrites'] ? 0 : gatherFor,
    lost: metrics.counter('apiserver_audit_error_total', 'Audit events that could not be written and are lost.')({}),
    failed: error => failed('writing the audit log', error),
  })
}
