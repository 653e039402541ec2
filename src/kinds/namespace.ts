// Namespace: neither stored nor created. Clients can read `default` and the namespaces in use (D2, D8).

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
    'Namespace is a space within which names are unique. Any DNS label is one; nothing has to be created first.',
  status: struct('Observed state of the namespace.', { phase: text('Always Active.') }),
  verbs: ['get', 'list'],
  stored: false,
  columns: [{ name: 'Status', type: 'string', description: 'Always Active.', value: o => o.status?.phase as string }],
  sample: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } },
})
