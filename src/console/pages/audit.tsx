// The audit log: who did what, searched on the server.

import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { type AuditQuery, auditFields, searchAudit, selectorOf } from '../data/audit.ts'
import { useNewEvents } from '../data/audit-feed.ts'
import { auditCommand } from '../data/commands.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/fields.tsx'
import { count } from '../ui/format.ts'
import { Command, ErrorState, Loading, Page, State } from '../ui/parts.tsx'
import style from './audit.module.css'
import { AuditTable } from './audit-table.tsx'

const labels: { readonly [field in (typeof auditFields)[number]]: readonly [label: string, help: string] } = {
  user: ['User', ''],
  verb: ['Verb', 'create, patch, delete, …'],
  resource: ['Resource', 'teams, sharedsecrets, …'],
  namespace: ['Namespace', ''],
  name: ['Name', ''],
  uid: ['Object uid', ''],
  code: ['Code', '403, or 4xx'],
  from: ['From', '2026-01-31T08:00:00Z'],
  to: ['To', ''],
}

export function AuditPage() {
  const search = useSearch({ strict: false }) as AuditQuery & { readonly reads?: string }
  const query = pick(search)
  const withReads = search.reads === 'true'
  const navigate = useNavigate()
  const [isLive, setLive] = useState(true)
  const selector = selectorOf(query, withReads)
  const { data, error, isPending, hasNextPage, fetchNextPage, isFetchingNextPage, refetch } = useInfiniteQuery({
    queryKey: ['audit', selector],
    queryFn: ({ pageParam }) => searchAudit(selector, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
  })
  const added = useNewEvents({ selector, first: data?.pages[0], isLive, reload: refetch })
  const events = [...added, ...(data?.pages.flatMap(page => page.events) ?? [])]
  return (
    <Page
      title="Who did what"
      sub="Searched on the server, newest first. You see your own actions, and those on objects you own; administrators see everything."
    >
      <Search key={JSON.stringify(query)} query={query} />
      <div className={style.bar}>
        <label>
          <input type="checkbox" checked={isLive} onChange={event => setLive(event.currentTarget.checked)} /> Show new
          events
        </label>
        <label>
          <input
            type="checkbox"
            checked={withReads}
            onChange={event =>
              void navigate({
                to: '/audit',
                search: { ...query, ...(event.currentTarget.checked ? { reads: 'true' } : {}) },
              })
            }
          />{' '}
          Show reads
        </label>
        <span role="status">{data && `${count(events.length)} events${hasNextPage ? ', more exist' : ''}`}</span>
      </div>
      {isPending && <Loading />}
      {error && <ErrorState error={error} retry={() => void refetch()} />}
      {data && events.length === 0 && (
        <State title="No event matches">
          <p>Use fewer conditions, or a longer time.</p>
        </State>
      )}
      {events.length > 0 && <AuditTable events={events} />}
      {hasNextPage && (
        <p>
          <Button isDisabled={isFetchingNextPage} onPress={() => void fetchNextPage()}>
            Older events
          </Button>
        </p>
      )}
      <Command>{auditCommand(query)}</Command>
    </Page>
  )
}

const pick = (search: AuditQuery): AuditQuery =>
  Object.fromEntries(auditFields.flatMap(field => (search[field] ? [[field, String(search[field])]] : [])))

function Search({ query }: { query: AuditQuery }) {
  const navigate = useNavigate()
  const [form, setForm] = useState<AuditQuery>(query)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void navigate({ to: '/audit', search: pick(form) })
  }
  const yesterday = () => {
    const start = new Date()
    start.setDate(start.getDate() - 1)
    start.setHours(0, 0, 0, 0)
    const end = new Date(start)
    end.setHours(23, 59, 59)
    void navigate({ to: '/audit', search: pick({ ...form, from: start.toISOString(), to: end.toISOString() }) })
  }
  return (
    <form onSubmit={submit}>
      <div className={style.form}>
        {auditFields.map(field => (
          <TextField
            key={field}
            label={labels[field][0]}
            help={labels[field][1]}
            value={form[field] ?? ''}
            onChange={value => setForm({ ...form, [field]: value })}
          />
        ))}
      </div>
      <div className={style.bar}>
        <Button type="submit" look="primary">
          Search
        </Button>
        <Button onPress={yesterday}>Yesterday</Button>
        <Button look="quiet" onPress={() => void navigate({ to: '/audit', search: {} })}>
          Clear
        </Button>
      </div>
    </form>
  )
}
