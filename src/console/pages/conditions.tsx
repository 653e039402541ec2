// The conditions of an object.

import type { Resource } from '../../api/object.ts'
import { text } from '../text/common.ts'
import { ago } from '../ui/format.ts'
import { Card, Facts, Pill } from '../ui/parts.tsx'

type Condition = {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
}

export function conditionsOf(object: Resource): readonly Condition[] {
  const { conditions } = (object.status ?? {}) as { readonly conditions?: readonly Condition[] }
  return conditions ?? []
}

const toneOf = ({ status }: Condition) => (status === 'True' ? 'ok' : status === 'False' ? 'bad' : 'warn')
const wordOf = ({ status }: Condition) =>
  text.conditionStates[status === 'True' || status === 'False' ? status : 'Unknown']

export function readyPill(object: Resource) {
  const ready = conditionsOf(object).find(({ type }) => type === 'Ready')
  if (object.metadata.deletionTimestamp) return <Pill tone="warn">{text.beingDeleted}</Pill>
  if (!ready) return null
  return <Pill tone={toneOf(ready)}>{ready.status === 'True' ? text.ready : (ready.reason ?? text.notReady)}</Pill>
}

export function Conditions({ object }: { object: Resource }) {
  const conditions = conditionsOf(object)
  if (conditions.length === 0) return null
  return (
    <Card title={text.conditions}>
      <Facts
        of={conditions.map(condition => [
          condition.type,
          <span key={condition.type} title={condition.lastTransitionTime && ago(condition.lastTransitionTime)}>
            <Pill tone={toneOf(condition)}>{wordOf(condition)}</Pill> {condition.message}
          </span>,
        ])}
      />
    </Card>
  )
}
