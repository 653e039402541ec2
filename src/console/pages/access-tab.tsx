// Who may read and change an object, and what the caller may do with it.

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { attributesOf, explain } from '../data/permission.ts'
import { accessText } from '../text/access.tsx'
import { text } from '../text/common.ts'
import { Card, ErrorState, Facts, Loading, problemOf, Stack } from '../ui/parts.tsx'
import type { TabProps } from './tab.ts'
import { factsOf } from './who.ts'

const verbs = ['get', 'update', 'delete'] as const
const isForbidden = (error: Error) => problemOf(error).code === 403

export function AccessTab({ kind, at }: TabProps) {
  return (
    <Stack>
      {verbs
        .filter(verb => kind.verbs.includes(verb))
        .map(verb => (
          <WhoCan key={verb} verb={verb} kind={kind} at={at} />
        ))}
    </Stack>
  )
}

function WhoCan({ verb, kind, at }: Pick<TabProps, 'kind' | 'at'> & { verb: (typeof verbs)[number] }) {
  const attributes = attributesOf({ verb, kind, ...at })
  const { data, error, isPending } = useQuery({
    queryKey: ['who-can', attributes],
    queryFn: () => explain(attributes, { whoCan: true }),
  })
  return (
    <Card title={accessText.questions[verb]}>
      {isPending && <Loading />}
      {error && (isForbidden(error) ? <p>{accessText.isHidden}</p> : <ErrorState error={error} />)}
      {data && <Facts of={factsOf(data.status.who)} />}
      <Link to="/access/why" search={{ ...attributes }}>
        {text.explain}
      </Link>
    </Card>
  )
}
