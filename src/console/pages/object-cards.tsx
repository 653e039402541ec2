// Cards that the pages of several kinds show.

import type { Resource } from '../../api/object.ts'
import { text } from '../text/common.ts'
import { Ago, Card, Facts, Pill } from '../ui/parts.tsx'

export function MetadataCard({ object }: { object: Resource }) {
  const { metadata } = object
  const labels = Object.entries(metadata.labels ?? {})
  const managers = [...new Set((metadata.managedFields ?? []).map(({ manager = '' }) => manager))]
  return (
    <Card title={text.metadata}>
      <Facts
        of={[
          [text.created, metadata.creationTimestamp && <Ago at={metadata.creationTimestamp} />],
          [text.uid, metadata.uid && <code>{metadata.uid}</code>],
          [text.version, metadata.resourceVersion],
          [text.labels, labels.length > 0 && labels.map(([key, value]) => <Pill key={key}>{`${key}=${value}`}</Pill>)],
          [text.managers, managers.join(', ')],
        ]}
      />
    </Card>
  )
}
