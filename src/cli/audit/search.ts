// `platform audit search`: searches the audit log of the server, newest first, or follows it.

import type { Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { readDuration } from '../../host/duration.ts'
import { quoted } from '../../host/sanitize.ts'
import { AuditEvent } from '../../kinds/audit-event.ts'
import { contextFlag, headersFlag, namespaceProblems } from '../flags.ts'
import { cellsOf, headerOf, printJson, printRow, printTable, widthsOf } from '../print.ts'
import { openSession } from '../session.ts'
import { followEvents } from './follow.ts'

const text = (value: string, what: string) => ({ type: 'text', value, what }) as const
const when = 'a time such as 2026-01-31T12:00:00Z, a day such as 2026-01-31 (UTC), or a duration ago such as 24h'

export const auditSearch = defineCommand({
  words: ['audit', 'search'],
  what: 'Search the audit log of the server, newest first. Without the permission to list audit events, it shows your own actions and those on objects you own.',
  examples: [
    { what: 'Who deleted the team web', command: 'platform audit search --verb delete --resource teams --name web' },
    { what: 'Denied requests of the last day', command: 'platform audit search --code 403 --from 24h' },
    { what: 'Everything that happens to an object, live', command: 'platform audit search --name web --follow' },
  ],
  flags: {
    ...contextFlag,
    user: text('USER', 'User who acted, or who was impersonated.'),
    verb: text('VERB', 'Such as get, create, update, patch, delete.'),
    resource: text('RESOURCE', 'Such as teams, or ownedaccesskeys/rotate.'),
    namespace: { ...text('NAMESPACE', 'Namespace of the object.'), short: 'n', check: namespaceProblems },
    name: text('NAME', 'Name of the object.'),
    uid: text('UID', 'Unique identifier of the object.'),
    code: text('CODE', 'Status code such as 403, or 4xx.'),
    from: text('TIME', `Earliest time: ${when}.`),
    to: text('TIME', 'Latest time.'),
    limit: { ...text('N', 'Maximum number of events; 0: all.'), default: '100' },
    follow: { type: 'switch', what: 'Keep watching, and print new events at the end.' },
    output: { ...text('FORMAT', 'Output format.'), short: 'o', choices: ['table', 'json', 'yaml'] },
    ...headersFlag,
  },
  run: async ({ flags }, io) => {
    const { user, verb, resource, namespace, name, uid, code, limit: most, follow, output = 'table' } = flags
    if (!/^\d{1,7}$/.test(most)) throw new UsageError([`--limit: ${quoted(most)} must be a whole number`])
    if (follow && flags.to !== undefined) throw new UsageError(['--follow cannot be combined with --to'])
    const from = flags.from === undefined ? undefined : timeOf('--from', flags.from, io.now())
    const to = flags.to === undefined ? undefined : timeOf('--to', flags.to, io.now())
    const terms = Object.entries({ user, verb, resource, namespace, name, uid, code, from, to })
    const fieldSelector = terms.flatMap(([field, value]) => (value === undefined ? [] : [termOf(field, value)])).join()
    const session = await openSession(io, { context: flags.context })
    try {
      const found = await search(session.resources, fieldSelector, Number(most) || Number.POSITIVE_INFINITY)
      const print = printer(io, output, flags['no-headers'])
      if (!follow) {
        print.all(found.events)
        return 0
      }
      print.some(found.events.toReversed())
      const known = found.events.map(({ metadata }) => metadata.uid ?? '')
      await followEvents(session.resources, io, {
        fieldSelector,
        ...found,
        known,
        print: event => print.some([event]),
      })
      return 0
    } finally {
      session.close()
    }
  },
})

const termOf = (field: string, value: string) => `${field}=${value.replace(/[\\,=]/g, '\\$&')}`

const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

function timeOf(flag: string, given: string, now: number): string {
  if (rfc3339.test(given)) return given
  // The last day of a range belongs to it.
  if (/^\d{4}-\d\d-\d\d$/.test(given)) return flag === '--to' ? `${given}T23:59:59.999Z` : `${given}T00:00:00Z`
  if (/^\d+[smhdw]/.test(given)) return new Date(now - readDuration(flag, given) * 1000).toISOString()
  throw new UsageError([`${flag}: ${quoted(given)} must be ${when}`])
}

type Found = { readonly events: readonly Resource[]; readonly resourceVersion: string }

/** Reads pages until there are enough events. A page may be empty although older events match. */
async function search(resources: Pick<Resources, 'list'>, fieldSelector: string, most: number): Promise<Found> {
  const events: Resource[] = []
  let resourceVersion: string | undefined
  let next: string | undefined
  do {
    const limit = Math.min(500, most - events.length)
    const page = await resources.list(AuditEvent, { fieldSelector, limit, ...(next ? { continue: next } : {}) })
    events.push(...page.items.map(({ object }) => object))
    resourceVersion ??= page.resourceVersion
    next = page.continue
  } while (next && events.length < most)
  return { events, resourceVersion: resourceVersion ?? '' }
}

/** Without the name and age of events, which say nothing to people. */
const rowOf = (event: Resource, now: number) => cellsOf(AuditEvent, event, {}, now).slice(1, -1)

function printer(io: Io, output: string, bare: boolean) {
  const header = headerOf(AuditEvent, {}).slice(1, -1)
  let isHeaded = bare
  let widths: readonly number[] = []
  const rows = (events: readonly Resource[]) => events.map(event => rowOf(event, io.now()))
  return {
    all(events: readonly Resource[]) {
      if (output !== 'table') printJson(io, { apiVersion: 'v1', kind: 'List', items: events }, output)
      else if (events.length) printTable(io, header, rows(events), bare)
      else io.err('No audit events found.\n')
    },
    /** One after another. The first rows set the column widths. */
    some(events: readonly Resource[]) {
      if (output === 'json') for (const event of events) io.out(`${JSON.stringify(event)}\n`)
      else if (output === 'yaml')
        for (const event of events) {
          io.out('---\n')
          printJson(io, event, 'yaml')
        }
      else if (events.length) {
        if (!widths.length) widths = widthsOf([header, ...rows(events)])
        if (!isHeaded) printRow(io, header, widths)
        isHeaded = true
        for (const row of rows(events)) printRow(io, row, widths)
      }
    },
  }
}
