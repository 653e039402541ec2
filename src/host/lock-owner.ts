// Who holds a lock: written into it, so that whoever finds it sees that they are gone. lock.ts writes and asks.

import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { isObject } from '../api/object.ts'

/** More than this nobody writes who holds one. */
export const mostHolderBytes = 1024

/** Empty where this system does not tell: then nobody who finds the lock can know, and they wait. */
export function holderText(pid = process.pid): string {
  const [host, life] = [ownHost(), lifeOf(pid)]
  return host && life ? `${JSON.stringify({ host, pid, started: life.started })}\n` : ''
}

/**
 * True only where that is certain. Of another machine that shares this home, or a container with processes of its own, nothing can be
 * known from here. A number that another process has by now is known by when that one was started.
 */
export function isGone(text: string): boolean {
  const { host, pid, started } = holderIn(text)
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0 || !host || host !== ownHost()) return false
  if (!isThere(pid)) return true
  const life = lifeOf(pid)
  return life !== undefined && (life.isOver || life.started !== started)
}

function holderIn(text: string) {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

/** This machine since it was started, and whose processes are counted here. undefined: unknown, or /proc tells of others. */
function ownHost(): string | undefined {
  try {
    if (readlinkSync('/proc/self') !== String(process.pid)) return undefined
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${hostname()} ${boot} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return undefined
  }
}

/** One of somebody else is there as well, though /proc may hide it. */
function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/** When it was started, in ticks since the machine was; whether it has ended and its parent has not asked about it yet. */
function lifeOf(pid: number): { readonly started: string; readonly isOver: boolean } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // Its name stands in brackets, and may have anything in it.
    const [state = '', ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const [threads, started] = [rest[16], rest[18]]
    // While another of its threads is not done, neither is what that one writes.
    return started ? { started, isOver: /^[ZX]$/.test(state) && Number(threads) <= 1 } : undefined
  } catch {
    return undefined
  }
}
