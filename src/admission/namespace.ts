// Namespace: lists the namespaces that contain objects, and `default` (D2, D8).

import type { Admission } from '../api/admission.ts'
import type { ObjectOf } from '../api/kind.ts'
import type { Namespace } from '../kinds/namespace.ts'

type Dependencies = { readonly namespacesInUse: () => readonly string[] }

export const namespaceAdmission = ({ namespacesInUse }: Dependencies): Admission<ObjectOf<typeof Namespace>> => ({
  collect: () =>
    [...new Set(['default', ...namespacesInUse()])].sort().map(name => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels: { 'kubernetes.io/metadata.name': name } },
      status: { phase: 'Active' },
    })),
})
