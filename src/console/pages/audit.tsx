// The audit log: who did what, searched on the server.

import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { type AuditQuery, auditFields, searchAudit, selectorOf } from '../data/audit.ts'
import { useNewEvents } from '../data/audit-feed.ts'
import { auditCommand } from '../data/commands.ts'
import { auditText } from '../text/audit.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/fields.tsx'
import { fromLocalField, localField } from '../ui/format.ts'
import { Command, ErrorState, Loading, Page, State } from '../ui/parts.tsx'
import style from './audit.module.css'
import { AuditTable } from './audit-table.tsx'

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
    <Page title={auditText.title} sub={auditText.about}>
      <Search key={JSON.stringify(query)} query={query} withReads={withReads} />
      <div className={style.bar}>
        <label>
          <input type="checkbox" checked={isLive} onChange={event => setLive(event.currentTarget.checked)} />{' '}
          {auditText.showNew}
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
          {auditText.showReads}
        </label>
        <span role="status">{data && auditText.events(events.length, hasNextPage)}</span>
      </div>
      {isPending && <Loading />}
      {error && <ErrorState error={error} retry={() => void refetch()} />}
      {data && events.length === 0 && (
        <State title={auditText.noMatch}>
          <p>{auditText.noMatchAdvice}</p>
        </State>
      )}
      {events.length > 0 && <AuditTable events={events} />}
      {hasNextPage && (
        <p>
          <Button isDisabled={isFetchingNextPage} onPress={() => void fetchNextPage()}>
            {auditText.older}
          </Button>
        </p>
      )}
      <Command>{auditCommand(query)}</Command>
    </Page>
  )
}

const pick = (search: AuditQuery): AuditQuery =>
  Object.fromEntries(auditFields.flatMap(field => (search[field] ? [[field, String(search[field])]] : [])))

/** The address has times as the server reads them, the form has local ones. */
const withTimes = (query: AuditQuery, convert: (time: string) => string): AuditQuery => ({
  ...query,
  from: convert(query.from ?? ''),
  to: convert(query.to ?? ''),
})

function Search({ query, withReads }: { query: AuditQuery; withReads: boolean }) {
  const reads = withReads ? { reads: 'true' } : {}
  const navigate = useNavigate()
  const [form, setForm] = useState<AuditQuery>(withTimes(query, localField))
  const wanted = () => pick(withTimes(form, fromLocalField))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void navigate({ to: '/audit', search: { ...wanted(), ...reads } })
  }
  const yesterday = () => {
    const start = new Date()
    start.setDate(start.getDate() - 1)
    start.setHours(0, 0, 0, 0)
    const end = new Date(start)
    end.setHours(23, 59, 59, 999)
    const times = { from: start.toISOString(), to: end.toISOString() }
    void navigate({ to: '/audit', search: { ...wanted(), ...times, ...reads } })
  }
  return (
    <form onSubmit={submit}>
      <div className={style.form}>
        {auditFields.map(field => (
          <TextField
            key={field}
            label={auditText.fields[field][0]}
            help={auditText.fields[field][1]}
            type={field === 'from' || field === 'to' ? 'datetime-local' : 'text'}
            value={form[field] ?? ''}
            onChange={value => setForm({ ...form, [field]: value })}
          />
        ))}
      </div>
      <div className={style.bar}>
        <Button type="submit" look="primary">
          {auditText.search}
        </Button>
        <Button onPress={yesterday}>{auditText.yesterday}</Button>
        <Button look="quiet" onPress={() => void navigate({ to: '/audit', search: {} })}>
          {auditText.clear}
        </Button>
      </div>
    </form>
  )
}
