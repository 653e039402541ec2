// SharedSecret: sensitive data shared across users, teams and clusters (SPEC §2.3).

import { defineKind, type KindOf } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { longText, type Static, struct } from '../api/schema.ts'
import { formerLastRead, lastReadColumn, lastread } from './last-read.ts'
import { keepConditions } from './object-conditions.ts'
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

const spec = struct('Desired state of the shared secret.', {
  displayName: longText('Name shown to people.'),
  description: longText('Describes the shared secret.'),
  owner,
  data,
  stringData,
  access,
})
const status = struct('Observed state of the shared secret.', {
  conditions,
  observedGeneration,
  version,
  lastRead: formerLastRead,
})

export const SharedSecret: KindOf<Resource<Static<typeof spec>, Static<typeof status>>> = defineKind({
  kind: 'SharedSecret',
  plural: 'sharedsecrets',
  singular: 'sharedsecret',
  shortNames: ['shs', 'globalsecret', 'globalsecrets'],
  categories: ['all', 'platform'],
  namespaced: true,
  description: 'SharedSecret, a global secret, holds sensitive data shared across users, teams and connected clusters.',
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
      name: 'Owner',
      type: 'string',
      description: 'Owner of the object.',
      priority: 1,
      value: o => ownerName(o.spec?.owner),
    },
    lastReadColumn,
  ],
  rights: sharedRights,
  readers: sharedReaders,
  assign: (next, old, caller) => keepConditions(keepOwner(next, old, caller), old, caller),
  grants: sharedGrants,
  keepsLastRead: true,
  validate: (next, old) => [
    ...checkData(next.spec?.data, old?.spec?.data),
    ...checkOwner(next.spec?.owner),
    ...checkAccess(next.spec?.access, old?.spec?.access),
  ],
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'SharedSecret',
    metadata: { name: 'registry', namespace: 'default' },
    spec: { displayName: 'Registry', data: { password: 'aHVudGVyMg==' } },
  },
})

export function ownerName(value: unknown): string | undefined {
  const one = value as { user?: string; team?: string } | undefined
  return one?.user ?? (one?.team ? `team ${one.team}` : undefined)
}
