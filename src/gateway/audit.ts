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
  /** Rejects with UsageError. undefined: it is the same. */
  prepare(config: GatewayConfig): Promise<Change | undefined>
  /** Resolves when all that was recorded is out, or given up. */
  close(): Promise<void>
}

export type GatewayAuditOptions = Pick<AuditLogOptions, 'metrics' | 'sourcesOf' | 'now' | 'failed'> & {
  readonly file: string
}

type Held = { readonly stamp: string; readonly place: string; readonly sink: Sink; readonly audit: Audit }

/** Rejects with UsageError. */
export async function openGatewayAudit(first: GatewayConfig, options: GatewayAuditOptions): Promise<GatewayAudit> {
  const { file } = options
  /** The salt if no file is configured: it stays the same until the program ends. */
  const random = randomBytes(32)
  const open = async (config: GatewayConfig, before?: Held): Promise<Held> => {
    const settings = auditSettingsOf(config, file)
    const place = settings['audit.log']
    const salt = saltOf(config, file) ?? random
    const policy = await policyOf(settings)
    const stamp = JSON.stringify([place, policy, salt.toString('hex')])
    if (before?.stamp === stamp) return before
    const into = { ...options, settings, directory: dirname(file), salt }
    // A file that stays is not opened twice: its lines stay in order.
    const sink = before?.place === place ? before.sink : await openAuditSink(into).catch(unopened(file, place))
    return { stamp, place, sink, audit: auditInto(sink, policy, into) }
  }
  let held = await open(first)
  const closing = new Set<Promise<void>>()
  const leave = ({ sink }: Held) => {
    if (sink === held.sink) return
    const closed = sink.close().finally(() => closing.delete(closed))
    closing.add(closed)
  }
  return {
    begin: (exchange, question, caller) => held.audit.begin(exchange, question, caller),
    started: (trail, code) => held.audit.started(trail, code),
    complete: (trail, code, error) => held.audit.complete(trail, code, error),
    async prepare(config) {
      const before = held
      const next = await open(config, before)
      if (next === before) return undefined
      return {
        use() {
          held = next
        },
        drop() {
          held = before
          leave(next)
        },
        // Requests in flight are recorded in the new log from now on, so the previous one receives nothing more.
        done: () => leave(before),
      }
    },
    async close() {
      await Promise.all([...closing, held.sink.close()])
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
  const place = auditSettingsOf(config, file)['audit.log']
  if (place === '-' || place === 'off') return []
  const tell = (why: string) => [`${file}: audit.log: cannot write ${place}: ${why}`]
  const directory = dirname(place)
  try {
    const isThere = statSync(place, { throwIfNoEntry: false })
    if (isThere?.isDirectory()) return tell('it is a directory')
    if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory())
      return tell(`there is no directory ${directory}`)
    accessSync(isThere ? place : directory, isThere ? constants.W_OK : constants.W_OK | constants.X_OK)
    return []
  } catch (error) {
    return [`${file}: audit.log: ${writeProblem(place, error)}`]
  }
}

function saltOf({ audit = {} }: GatewayConfig, file: string): Buffer | undefined {
  try {
    return audit.salt ? saltIn(resolve(dirname(file), audit.salt), true) : undefined
  } catch (error) {
    throw new UsageError([`${file}: audit.salt: ${(error as Error).message}`])
  }
}

const unopened = (file: string, place: string) => (error: unknown) => {
  throw new UsageError([`${file}: audit.log: ${place} cannot be written: ${(error as Error).message}`])
}
