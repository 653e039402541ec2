// Cards beside a secret: who can read it, and when somebody last did.

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ApiError } from '../../api/errors.ts'
import { attributesOf, explain } from '../data/permission.ts'
import { readLastRead } from '../data/secrets.ts'
import { text } from '../text.ts'
import { ago, dateTime } from '../ui/format.ts'
import { Card, Facts } from '../ui/parts.tsx'
import type { TabProps } from './tab.ts'
import { whoOf } from './who.ts'

type At = Pick<TabProps, 'kind' | 'at'>

export function WhoCanRead({ kind, at }: At) {
  const attributes = attributesOf({ verb: 'get', kind, ...at })
  const { data, error } = useQuery({
    queryKey: ['who-can', attributes],
    queryFn: () => explain(attributes, { whoCan: true }),
  })
  return (
    <Card title="Who can read it">
      {error && <p>{error instanceof ApiError && error.code === 403 ? 'You may not see who can.' : error.message}</p>}
      {data && (
        <Facts of={(data.status.who ?? []).map(whoOf).map(({ who, by }) => [who, by && `through ${by}`] as const)} />
      )}
      <Link to="/access/why" search={{ ...attributes, who: 'true' }}>
        {text.explain}
      </Link>
    </Card>
  )
}

export function LastRead({ kind, at }: At) {
  const { data, isPending, error } = useQuery({
    queryKey: ['last-read', kind.id, at],
    queryFn: async () => (await readLastRead(kind, at)) ?? null,
    refetchInterval: 30_000,
  })
  if (isPending || error) return null
  return (
    <Card title="Last read">
      <p>{data === null ? text.never : <time title={dateTime(data)}>{ago(data)}</time>}</p>
      <Link to="/audit" search={{ resource: kind.plural, namespace: at.namespace, name: at.name, verb: 'get' }}>
        Who read it
      </Link>
    </Card>
  )
}
