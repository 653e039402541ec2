// The audit log of a standalone gateway. A changed configuration can replace it.

import { randomBytes } from 'node:crypto'
import { accessSync, constants, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { UsageError } from '../host/command.ts'
import { writeProblem } from '../host/fs-errors.ts'
import type { Audit } from '../serving/audit.ts'
import { type AuditLogOptions, auditInto, openAuditSink, policyOf } from '../serving/audit-log.ts'
import { saltIn } from '../serving/audit-redact.ts'
import type { Sink } from '../serving/audit-sink.ts'
import type { Change } from './config/reload-transaction.ts'
import type { GatewayConfig } from './config/schema.ts'
import type { GatewayOptions } from './gateway.ts'

export type GatewayAudit = GatewayOptions['audit'] & {
  /** Rejects with UsageError. undefined: nothing changed. */
  prepare(config: GatewayConfig): Promise<Change | undefined>
  /** Resolves when all events are written or lost. */
  close(): Promise<void>
}

export type GatewayAuditOptions = Pick<AuditLogOptions, 'metrics' | 'sourcesOf' | 'now' | 'failed'> & {
  readonly file: string
}

type OpenAudit = { readonly stamp: string; readonly destination: string; readonly sink: Sink; readonly audit: Audit }

/** Rejects with UsageError. */
export async function openGatewayAudit(first: GatewayConfig, options: GatewayAuditOptions): Promise<GatewayAudit> {
  const { file } = options
  /** The salt if no file is configured: it stays the same until the program ends. */
  const random = randomBytes(32)
  const open = async (config: GatewayConfig, before?: OpenAudit): Promise<OpenAudit> => {
    const settings = auditSettingsOf(config, file)
    const destination = settings['audit.log']
    const salt = saltOf(config, file) ?? random
    const policy = await policyOf(settings)
    const stamp = JSON.stringify([destination, policy, salt.toString('hex')])
    if (before?.stamp === stamp) return before
    const into = { ...options, settings, directory: dirname(file), salt }
    // A log file that stays the same is not opened twice, so that its lines stay in order.
    const sink =
      before?.destination === destination ? before.sink : await openAuditSink(into).catch(unopened(file, destination))
    return { stamp, destination, sink, audit: auditInto(sink, policy, into) }
  }
  let current = await open(first)
  const closing = new Set<Promise<void>>()
  const closeSink = ({ sink }: OpenAudit) => {
    if (sink === current.sink) return
    const closed = sink.close().finally(() => closing.delete(closed))
    closing.add(closed)
  }
  return {
    begin: (exchange, question, caller) => current.audit.begin(exchange, question, caller),
    started: (context, code) => current.audit.started(context, code),
    complete: (context, code, error) => current.audit.complete(context, code, error),
    async prepare(config) {
      const before = current
      const next = await open(config, before)
      if (next === before) return undefined
      return {
        use() {
          current = next
        },
        drop() {
          current = before
          closeSink(next)
        },
        // Requests in flight are recorded in the new log from now on, so the previous one receives nothing more.
        done: () => closeSink(before),
      }
    },
    async close() {
      await Promise.all([...closing, current.sink.close()])
    },
  }
}

export function auditSettingsOf({ audit = {} }: GatewayConfig, file: string): AuditLogOptions['settings'] {
  const at = (path: string) => resolve(dirname(file), path)
  const { log = '-', policy } = audit
  return {
    'audit.log': log === '-' || log === 'off' ? log : at(log),
    'audit.policy': policy ? at(policy) : '',
    'audit.maxSize': 100,
    'audit.maxFiles': 10,
    'audit.maxAge': 0,
    'audit.refuseWrites': false,
  }
}

/** Checks the target of the log without opening it: a check must not create a file. */
export function checkAuditLog(config: GatewayConfig, file: string): string[] {
  const destination = auditSettingsOf(config, file)['audit.log']
  if (destination === '-' || destination === 'off') return []
  const problem = (why: string) => [`${file}: audit.log: cannot write ${destination}: ${why}`]
  const directory = dirname(destination)
  try {
    const isThere = statSync(destination, { throwIfNoEntry: false })
    if (isThere?.isDirectory()) return problem('it is a directory')
    if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory())
      return problem(`the directory ${directory} does not exist`)
    accessSync(isThere ? destination : directory, isThere ? constants.W_OK : constants.W_OK | constants.X_OK)
    return []
  } catch (error) {
    return [`${file}: audit.log: ${writeProblem(destination, error)}`]
  }
}

function saltOf({ audit = {} }: GatewayConfig, file: string): Buffer | undefined {
  try {
    return audit.salt ? saltIn(resolve(dirname(file), audit.salt), true) : undefined
  } catch (error) {
    throw new UsageError([`${file}: audit.salt: ${(error as Error).message}`])
  }
}

const unopened = (file: string, destination: string) => (error: unknown) => {
  throw new UsageError([`${file}: audit.log: cannot write ${destination}: ${(error as Error).message}`])
}
