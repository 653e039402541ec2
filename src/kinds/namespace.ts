// Namespace: a read-only kind that is not stored.
// Shows the namespaces in use, and `default` (D2, D8).

import { defineKind } from '../api/kind.ts'
import { struct, text } from '../api/schema.ts'

export const Namespace = defineKind({
  group: '',
  kind: 'Namespace',
  plural: 'namespaces',
  singular: 'namespace',
  shortNames: ['ns'],
  namespaced: false,
  description:
    'Namespace is a space within which names are unique. Any DNS label is a valid namespace and need not be created.',
  status: struct('Observed state of the namespace.', { phase: text('Always Active.') }),
  verbs: ['get', 'list'],
  stored: false,
  columns: [{ name: 'Status', type: 'string', description: 'Always Active.', value: o => o.status?.phase as string }],
  sample: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } },
})
