// Reads the parts of a support bundle from a server, with the permissions of the caller.

import type { AuditLine } from '../../api/audit-query.ts'
import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import { isObject, type Json } from '../../api/object.ts'
import { pathOf, prefix } from '../../api/paths.ts'
import { errorOf } from '../../client/response-error.ts'
import { AuditEvent } from '../../kinds/audit-event.ts'
import { kinds } from '../../kinds/index.ts'
import type { Session } from '../session.ts'
import { brokenConditions, countErrors } from './objects.ts'
import { codeWord, healthText, metricsText, type Redaction } from './redact.ts'

/** A file of the bundle. */
export type Part = { readonly name: string; readonly what: string; readonly text: string }

type Asked = { readonly session: Session; readonly redaction: Redaction; readonly now: number }

/** Throws ApiError if the server cannot be reached or rejects the key. A part that the caller may not read has the reason instead. */
export async function partsOfServer(asked: Asked): Promise<Part[]> {
  const version = await read(asked, `${prefix}/version`)
  const parts = [
    json('server/version.json', 'version of the server', pick(JSON.parse(version), versionFields)),
    await tried('server/readyz.txt', 'health checks', async () => healthText(await health(asked, 'readyz'))),
    await tried('server/livez.txt', 'health checks', async () => healthText(await health(asked, 'livez'))),
    await tried('server/metrics.txt', 'metrics without names', async () => metricsText(await read(asked, '/metrics'))),
    await tried('server/discovery.json', 'groups and resources of the API', () => discovery(asked)),
    await tried('server/audit-errors.json', 'number of failed requests of the last day by code', () => errors(asked)),
  ]
  const objects = await Promise.all(kinds.filter(isListed).map(kind => objectsOf(asked, kind)))
  return [
    ...parts,
    json(
      'server/objects.json',
      'number of objects by kind',
      objects.map(({ kind, count, problem }) => ({ kind, ...(problem ?? { count }) })),
    ),
    json(
      'server/conditions.json',
      'conditions that are not True, without messages',
      objects.flatMap(({ conditions }) => conditions),
    ),
  ]
}

const versionFields = ['gitVersion', 'goVersion', 'platform']
const isListed = ({ stored, served, verbs }: Kind) => stored && served && verbs.includes('list')

export const json = (name: string, what: string, value: unknown): Part => ({
  name,
  what,
  text: `${JSON.stringify(value, null, 2)}\n`,
})

async function read({ session: { server, fetch } }: Asked, path: string, accept = '*/*'): Promise<string> {
  const response = await fetch(`${server.replace(/\/+$/, '')}${path}`, { headers: { Accept: accept } })
  if (!response.ok) throw await errorOf(response)
  return response.text()
}

/** A failed check answers 500 with the list of checks. */
async function health({ session: { server, fetch } }: Asked, page: string): Promise<string> {
  const response = await fetch(`${server.replace(/\/+$/, '')}/${page}?verbose`, { headers: {} })
  return response.text()
}

/** A permission that is missing must not prevent the rest. */
async function tried(name: string, what: string, look: () => Promise<string>): Promise<Part> {
  try {
    return { name, what, text: await look() }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { name, what: `${what} (not readable: ${error.code})`, text: `${JSON.stringify(problemOf(error))}\n` }
  }
}

/** Without the message, which can contain names. */
const problemOf = (error: ApiError) => ({ code: error.code, reason: codeWord(error.status.reason) })

const pick = (value: unknown, names: readonly string[]) =>
  Object.fromEntries(
    names.flatMap(name => (isObject(value) && typeof value[name] === 'string' ? [[name, value[name]]] : [])),
  )

async function discovery(asked: Asked): Promise<string> {
  const versions = [...new Set(kinds.filter(({ served }) => served).map(({ group, version }) => base(group, version)))]
  const found = await Promise.all(
    versions.map(async path => {
      const { resources = [] } = JSON.parse(await read(asked, `${prefix}${path}`, 'application/json')) as {
        resources?: readonly { name: string; kind: string; namespaced: boolean; verbs: readonly string[] }[]
      }
      return {
        path,
        resources: resources.map(({ name, kind, namespaced, verbs }) => ({ name, kind, namespaced, verbs })),
      }
    }),
  )
  return `${JSON.stringify(found, null, 2)}\n`
}

const base = (group: string, version: string) => (group ? `/apis/${group}/${version}` : `/api/${version}`)

type Counted = {
  readonly kind: string
  readonly count: number
  readonly conditions: readonly object[]
  readonly problem?: object
}

const page = 500

/** The data of secrets is never requested, so this does not count as reading them (D35). */
async function objectsOf(asked: Asked, kind: Kind): Promise<Counted> {
  let count = 0
  const conditions: object[] = []
  let next = ''
  try {
    do {
      const query = new URLSearchParams({ limit: String(page), omitData: 'true', ...(next ? { continue: next } : {}) })
      const list = JSON.parse(await read(asked, `${prefix}${pathOf(kind, {})}?${query}`, 'application/json')) as {
        metadata?: { continue?: string }
        items?: readonly object[]
      }
      count += list.items?.length ?? 0
      conditions.push(...brokenConditions(kind, list.items ?? [], asked.redaction))
      next = list.metadata?.continue ?? ''
    } while (next)
    return { kind: kind.kind, count, conditions }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { kind: kind.kind, count, conditions, problem: problemOf(error) }
  }
}

const day = 24 * 3600 * 1000
const mostEvents = 5000

async function errors({ session: { resources }, now }: Asked): Promise<string> {
  const events: Json[] = []
  for (const code of ['4xx', '5xx']) {
    const fieldSelector = `code=${code},from=${new Date(now - day).toISOString()}`
    let next: string | undefined
    do {
      const list = await resources.list(AuditEvent, { fieldSelector, limit: 500, ...(next ? { continue: next } : {}) })
      events.push(...list.items.map(({ object }) => object as unknown as Json))
      next = list.continue
    } while (next && events.length < mostEvents)
  }
  return `${JSON.stringify(countErrors(events as unknown as readonly AuditLine[]), null, 2)}\n`
}
