// What happened to an object, from the audit log.

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { searchAudit, selectorOf } from '../data/audit.ts'
import { useNewEvents } from '../data/audit-feed.ts'
import { auditText } from '../text/audit.ts'
import { ErrorState, Loading, Stack, State } from '../ui/parts.tsx'
import { AuditTable } from './audit-table.tsx'
import type { TabProps } from './tab.ts'

export function EventsTab({ kind, at, object }: TabProps) {
  const selector = selectorOf({ uid: object.metadata.uid ?? '' })
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['events', selector],
    queryFn: () => searchAudit(selector),
  })
  const added = useNewEvents({ selector, first: data, isLive: true, reload: refetch })
  if (isPending) return <Loading />
  if (error) return <ErrorState error={error} />
  const events = [...added, ...data.events]
  return (
    <Stack>
      {events.length === 0 ? (
        <State title={auditText.noEvents}>
          <p>{auditText.noEventsAdvice}</p>
        </State>
      ) : (
        <AuditTable events={events} />
      )}
      <Link
        to="/audit"
        search={{ resource: kind.plural, name: at.name, ...(at.namespace ? { namespace: at.namespace } : {}) }}
      >
        {auditText.searchLog}
      </Link>
    </Stack>
  )
}
