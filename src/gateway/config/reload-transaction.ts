// A configuration change in two phases: prepare all parts, then use all of them or none.

import { UsageError } from '../../host/command.ts'
import type { GatewayConfig } from './schema.ts'

/** A prepared part that can replace the current one. */
export type Change = {
  /** Activates the prepared part. The previous one is kept until `done`. */
  readonly use: () => void
  /** Drops the prepared part and restores the previous one, because a part of the configuration is unusable. */
  readonly drop: () => void
  /** The whole configuration is active: releases the previous part. */
  readonly done: () => void
}

/** `prepare` throws or rejects with UsageError, after it has released everything it opened. undefined: nothing changed. */
export type Part = { prepare(config: GatewayConfig): Change | undefined | Promise<Change | undefined> }

/** Prepares all parts or none. Rejects with UsageError with the problems of all parts. */
export async function prepareAll(parts: readonly Part[], config: GatewayConfig): Promise<Change> {
  const { ready, failures } = await prepareParts(parts, config)
  const change = asOne(ready)
  if (failures.length === 0) return change
  change.drop()
  throw new UsageError(problemsIn(failures))
}

/** `problems`: of the parts that cannot be used. */
export type Renewal = { readonly change: Change | undefined; readonly problems: readonly string[] }

/** Prepares the valid parts. */
export async function prepareSome(parts: readonly Part[], config: GatewayConfig): Promise<Renewal> {
  const { ready, failures } = await prepareParts(parts, config)
  return { change: ready.length ? asOne(ready) : undefined, problems: problemsIn(failures) }
}

const problemsIn = (failures: readonly unknown[]) =>
  failures.flatMap(one => (one instanceof UsageError ? one.problems : [(one as Error).message]))

async function prepareParts(parts: readonly Part[], config: GatewayConfig) {
  const tried = await Promise.allSettled(parts.map(async part => part.prepare(config)))
  return {
    ready: tried.flatMap(one => (one.status === 'fulfilled' && one.value ? [one.value] : [])),
    failures: tried.flatMap(one => (one.status === 'rejected' ? [one.reason as unknown] : [])),
  }
}

function asOne(changes: readonly Change[]): Change {
  const drop = () => each(changes.map(one => one.drop))
  return {
    use() {
      try {
        for (const one of changes) one.use()
      } catch (error) {
        drop()
        throw error
      }
    },
    drop,
    done: () => each(changes.map(one => one.done)),
  }
}

/** Runs all of them, and then throws the first error. */
function each(works: readonly (() => void)[]): void {
  const failures: unknown[] = []
  for (const work of works)
    try {
      work()
    } catch (error) {
      failures.push(error)
    }
  if (failures.length) throw failures[0]
}
