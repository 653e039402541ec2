// The parts of a support bundle from a data directory. Works while the server is stopped, and needs no key ring.

import { closeSync, existsSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { AuditLine } from '../api/audit-query.ts'
import type { Settings } from '../apiserver/settings.ts'
import { table } from '../apiserver/settings-table.ts'
import { json, type Part } from '../cli/support/from-server.ts'
import { objectIn } from '../cli/support/log-tail.ts'
import { brokenConditions, countErrors } from '../cli/support/objects.ts'
import { plainWords, type Redaction } from '../cli/support/redact.ts'
import { UsageError } from '../host/command.ts'
import { kinds } from '../kinds/index.ts'
import { isLoopback } from '../serving/address.ts'
import { auditFileOf } from '../serving/audit-log.ts'
import { readStored } from '../storage/index.ts'
import { readMeta } from '../storage/sqlite/schema.ts'

/** Throws UsageError if there is no such directory. A damaged store is a part with the problem. */
export function partsOfDirectory(settings: Settings, redaction: Redaction): Part[] {
  const directory = resolve(settings.data)
  if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError([`${settings.data} is not a directory: set --data to the data directory of a server`])
  const file = join(directory, 'platform.db')
  return [
    json('local/settings.json', 'settings, without paths, URLs and names', shownSettings(settings)),
    json('local/files.json', 'sizes of the known files in the data directory', sizesIn(directory)),
    json('local/audit-errors.json', 'number of failed requests by code', auditErrors(settings, directory)),
    ...(existsSync(file) ? storeParts(directory, file, redaction) : []),
  ]
}

function storeParts(directory: string, file: string, redaction: Redaction): Part[] {
  const facts = tried(() => storeFacts(file))
  // Sealed values stay encrypted: nothing here decrypts.
  const lists = tried(() => {
    const stored = readStored(directory)
    return kinds
      .filter(({ stored: isStored }) => isStored)
      .map(kind => {
        const objects = stored
          .list({ bucket: kind.id })
          .entries.map(({ text }) => JSON.parse(text.toString()) as object)
        return { kind, objects }
      })
  })
  const counts = Array.isArray(lists)
    ? lists.map(({ kind, objects }) => ({ kind: kind.kind, count: objects.length }))
    : lists
  const conditions = Array.isArray(lists)
    ? lists.flatMap(({ kind, objects }) => brokenConditions(kind, objects, redaction))
    : lists
  return [
    json('local/store.json', 'format and size of the store', facts),
    json('local/objects.json', 'number of objects by kind', counts),
    json('local/conditions.json', 'conditions that are not True, without messages', conditions),
  ]
}

/** A bundle is needed most when the store cannot be read. */
function tried<T>(look: () => T): T | { readonly problem: string } {
  try {
    return look()
  } catch (error) {
    return { problem: plainWords((error as Error).message) }
  }
}

/** Settings with a fixed set of values. */
const words = new Set(['storage', 'logLevel'])
const addresses = new Set(['https', 'http'])

/** Numbers, switches and fixed words. Of the others only whether they are set, because they contain paths, hosts and names. */
function shownSettings(settings: Settings): object {
  return Object.fromEntries(
    Object.entries(settings).map(([key, value]) => {
      if (typeof value === 'number' || typeof value === 'boolean') return [key, value]
      if (Array.isArray(value)) return [key, `${value.length} values`]
      const text = String(value)
      if (text === table[key as keyof typeof table].default) return [key, text === '' ? '' : `${text} (default)`]
      if (words.has(key) || text === 'off') return [key, text]
      if (addresses.has(key))
        return [key, `${isLoopback(text) ? 'loopback' : 'another address'}:${/\d+$/.exec(text)?.[0]}`]
      return [key, '(set)']
    }),
  )
}

const known = [
  ...['platform.db', 'platform.db-wal', 'platform.db-shm', 'audit.log', 'ca.crt', 'ca.key', 'master.key', 'admin.key'],
  ...['admin.kubeconfig', 'audit.salt', 'lock.pid'],
]

const sizesIn = (directory: string) =>
  known.flatMap(name => {
    const found = statSync(join(directory, name), { throwIfNoEntry: false })
    return found ? [{ name, bytes: found.size, mode: (found.mode & 0o777).toString(8) }] : []
  })

function storeFacts(file: string): object {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
  try {
    const one = (sql: string) => Number(Object.values(db.prepare(sql).get() ?? {})[0])
    return {
      format: readMeta(db, 'version'),
      oldestRevision: readMeta(db, 'floor'),
      records: one('SELECT count(*) FROM log'),
      pageSize: one('PRAGMA page_size'),
      pages: one('PRAGMA page_count'),
      freePages: one('PRAGMA freelist_count'),
      sqlite: process.versions['sqlite'],
    }
  } finally {
    db.close()
  }
}

const auditTail = 8 * 1024 * 1024

/** Of the newest part of the current file. */
function auditErrors(settings: Settings, directory: string): object {
  const file = auditFileOf(settings, directory)
  const isFile = settings['audit.log'] !== 'off' && settings['audit.log'] !== '-'
  if (!isFile || !existsSync(file)) return []
  const lines = tailOf(file, auditTail).toString().split('\n')
  return countErrors(lines.flatMap(line => (objectIn(line) as AuditLine | undefined) ?? []))
}

/** The last bytes of a file. */
export function tailOf(file: string, most: number): Buffer {
  const handle = openSync(file, 'r')
  try {
    const { size } = fstatSync(handle)
    const tail = Buffer.alloc(Math.min(size, most))
    const length = readSync(handle, tail, 0, tail.length, size - tail.length)
    return tail.subarray(0, length)
  } finally {
    closeSync(handle)
  }
}
