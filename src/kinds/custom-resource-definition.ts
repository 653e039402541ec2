// CustomResourceDefinition: a kind without objects, because this server has no custom resources.
// Terraform's kubernetes_manifest lists it before every plan, and fails on a server without it.

import { defineKind } from '../api/kind.ts'

export const CustomResourceDefinition = defineKind({
  group: 'apiextensions.k8s.io',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  singular: 'customresourcedefinition',
  shortNames: ['crd', 'crds'],
  namespaced: false,
  description:
    'CustomResourceDefinition does not exist on this server. The list is always empty, for clients that expect it.',
  verbs: ['list'],
  stored: false,
  columns: [],
  sample: {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'none.example.org' },
  },
})
