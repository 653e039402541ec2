// ProjectSecret: a secret of one project, with its own data or a copy of a SharedSecret (D30).

import { type FieldError, invalidValue, required } from '../api/errors.ts'
import type { Grant } from '../api/grant.ts'
import { defineKind, type KindOf } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { longText, type Static, struct, text, time } from '../api/schema.ts'
import { checkDeliveries, deliver, deliverGrants } from './delivery.ts'
import { formerLastRead, lastReadColumn, lastread } from './last-read.ts'
import { conditionOf, keepConditions } from './object-conditions.ts'
import { keepSourceUid, sourceOf } from './project-secret-source.ts'
import { checkData, data, lastApplied, stringData, textForms } from './secret-data.ts'
import { history, version } from './secret-version.ts'
import {
  access,
  checkAccess,
  checkOwner,
  conditions,
  keepOwner,
  observedGeneration,
  oneOwner,
  owner,
  sharedGrants,
  sharedReaders,
  sharedRights,
} from './shared-schema.ts'
import { ownerName } from './shared-secret.ts'

const sharedSecretRef = struct('The SharedSecret whose data this secret follows.', {
  name: text('Name of the SharedSecret.'),
  namespace: text('Namespace of the SharedSecret; empty means default.'),
  uid: text(
    'uid of the SharedSecret, set by the server. To follow a SharedSecret that was created again under the same name, a user who may read it has to set the new uid.',
  ),
})

const spec = struct('Desired state of the project secret.', {
  displayName: longText('Name shown to people.'),
  description: longText('Describes the project secret.'),
  owner,
  data,
  stringData,
  access,
  sharedSecretRef,
  deliver,
})
const status = struct('Observed state of the project secret.', {
  conditions,
  observedGeneration,
  version,
  lastRead: formerLastRead,
  lastSynced: time('Last time the data was copied from the SharedSecret.'),
})

export const ProjectSecret: KindOf<Resource<Static<typeof spec>, Static<typeof status>>> = defineKind({
  kind: 'ProjectSecret',
  plural: 'projectsecrets',
  singular: 'projectsecret',
  shortNames: ['psec'],
  categories: ['all', 'platform'],
  namespaced: true,
  description: 'ProjectSecret holds sensitive data of one project, in the namespace p-<project>.',
  spec,
  status,
  statusSubresource: true,
  alternatives: oneOwner,
  subresources: { history, lastread },
  sealed: ['spec.data', lastApplied],
  textForms,
  columns: [
    {
      name: 'Display-Name',
      type: 'string',
      description: 'Name shown to people.',
      value: o => o.spec?.displayName as string,
    },
    {
      name: 'Keys',
      type: 'integer',
      description: 'Number of keys.',
      value: o => Object.keys(o.spec?.data ?? {}).length,
    },
    {
      name: 'Global-Secret',
      type: 'string',
      description: 'The SharedSecret (global secret) that it follows.',
      value: o => refName(o),
    },
    {
      name: 'Synced',
      type: 'string',
      description: 'Whether the data matches the SharedSecret. Empty without a SharedSecret.',
      value: o => syncedOf(o)?.status,
    },
    {
      name: 'Reason',
      type: 'string',
      description: 'Reason of the Synced condition.',
      priority: 1,
      value: o => syncedOf(o)?.reason,
    },
    {
      name: 'Owner',
      type: 'string',
      description: 'Owner of the object.',
      priority: 1,
      value: o => ownerName(o.spec?.owner),
    },
    {
      name: 'Delivered',
      type: 'string',
      description: 'Whether all connected clusters that should have it do. Empty without deliveries.',
      priority: 1,
      value: o => conditionOf(o, 'Delivered')?.status,
    },
    lastReadColumn,
  ],
  rights: sharedRights,
  readers: sharedReaders,
  assign: (next, old, caller) => keepConditions(keepSourceUid(keepOwner(next, old, caller), old), old, caller),
  grants: (object, to) => [...sharedGrants(object, to), ...copyGrant(object), ...deliverGrants(object)],
  keepsLastRead: true,
  validate: (next, old) => [
    ...checkNamespace(next.metadata.namespace ?? ''),
    ...(next.spec?.sharedSecretRef && !next.spec.sharedSecretRef.name
      ? [required('spec.sharedSecretRef.name', 'name of the SharedSecret to follow')]
      : []),
    ...checkData(next.spec?.data, old?.spec?.data),
    ...checkDeliveries(next.spec?.deliver),
    ...checkOwner(next.spec?.owner),
    ...checkAccess(next.spec?.access, old?.spec?.access),
  ],
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'ProjectSecret',
    metadata: { name: 'registry', namespace: 'p-web' },
    spec: { data: { password: 'aHVudGVyMg==' } },
  },
})

/** Readers of this secret can read the SharedSecret that it follows. */
function copyGrant(object: Resource<Static<typeof spec>, unknown>): Grant[] {
  const source = sourceOf(object)
  return source ? [{ type: 'copy', field: 'spec.sharedSecretRef', source, owner: object.spec?.owner ?? {} }] : []
}

function checkNamespace(namespace: string): FieldError[] {
  if (/^p-.+/.test(namespace)) return []
  return [
    invalidValue(
      'metadata.namespace',
      namespace,
      'a project secret must be in the namespace of its project, p-<project>',
    ),
  ]
}

type Condition = { readonly type?: string; readonly status?: string; readonly reason?: string }

function syncedOf(object: Resource): Condition | undefined {
  const conditions = (object.status?.['conditions'] ?? []) as readonly Condition[]
  return sourceOf(object) && conditions.find(({ type }) => type === 'Synced')
}

function refName(object: Resource): string | undefined {
  const source = sourceOf(object)
  return source && `${source.namespace}/${source.name}`
}
