// Cards beside a secret: who can read it, and when somebody last did.

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ApiError } from '../../api/errors.ts'
import { attributesOf, explain } from '../data/permission.ts'
import { readLastRead } from '../data/secrets.ts'
import { accessText } from '../text/access.tsx'
import { text } from '../text/common.ts'
import { secretText } from '../text/secrets.tsx'
import { Ago, Card, Facts } from '../ui/parts.tsx'
import type { TabProps } from './tab.ts'
import { factsOf } from './who.ts'

type At = Pick<TabProps, 'kind' | 'at'>

export function WhoCanRead({ kind, at }: At) {
  const attributes = attributesOf({ verb: 'get', kind, ...at })
  const { data, error } = useQuery({
    queryKey: ['who-can', attributes],
    queryFn: () => explain(attributes, { whoCan: true }),
  })
  return (
    <Card title={secretText.whoCanRead}>
      {error && <p>{error instanceof ApiError && error.code === 403 ? accessText.isHidden : error.message}</p>}
      {data && <Facts of={factsOf(data.status.who)} />}
      <Link to="/access/why" search={{ ...attributes, ...(error ? {} : { who: 'true' }) }}>
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
    <Card title={secretText.lastRead}>
      <p>{data === null ? text.never : <Ago at={data} />}</p>
      <Link to="/audit" search={{ resource: kind.plural, namespace: at.namespace, name: at.name, verb: 'get' }}>
        {secretText.whoRead}
      </Link>
    </Card>
  )
}
