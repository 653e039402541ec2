// Defines the schema of metadata (SPEC §2.2), and the full schema of an object.

import type { Kind } from './kind.ts'
import { flag, integer, list, longText, mapList, mapOf, type Schema, setOf, struct, text, time } from './schema.ts'

const ownerReference = struct(
  'An object this object depends on.',
  {
    apiVersion: text('API version of the referent.'),
    kind: text('Kind of the referent.'),
    name: text('Name of the referent.'),
    uid: text('UID of the referent.'),
    controller: flag('True when the reference points to the managing controller.'),
    blockOwnerDeletion: flag(
      'If true and the owner has the foregroundDeletion finalizer, the owner cannot be removed until this reference is. Setting it needs permission to delete the owner.',
    ),
  },
  ['apiVersion', 'kind', 'name', 'uid'],
)

const managedFieldsEntry = struct('Fields that a manager owns.', {
  manager: text('Identifier of the manager.'),
  operation: text('Apply or Update.'),
  apiVersion: text('Version of the resource that the field set applies to.'),
  time: time('Last time this manager added, changed or removed a field.'),
  fieldsType: text('FieldsV1.'),
  fieldsV1: mapOf({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as never, 'The field set.', {
    'x-kubernetes-preserve-unknown-fields': true,
  }),
  subresource: text('Subresource used for the update; empty for the main resource.'),
})

export const metadataSchema = struct('Standard metadata of an object.', {
  annotations: mapOf(
    longText(''),
    'Unstructured values set by external tools. Not queryable; preserved on modification.',
  ),
  creationTimestamp: time('Server time of creation. Read-only.'),
  deletionGracePeriodSeconds: integer(
    'Seconds granted before removal; set together with deletionTimestamp. Read-only; may only be shortened.',
  ),
  deletionTimestamp: time(
    'Time after which the object is removed, once finalizers is empty. Set by the server; read-only.',
  ),
  finalizers: setOf(
    text(''),
    'Must be empty before the object is removed. After a delete request, entries can only be removed.',
  ),
  generateName: text('Prefix for a unique name that the server generates if name is absent.'),
  generation: integer('Sequence number of the desired state. Read-only.'),
  labels: mapOf(text(''), 'Values that organise and select objects.'),
  managedFields: list(managedFieldsEntry, 'Field ownership of each manager. Maintained by the server.'),
  name: text('Unique within a namespace; cannot be updated.'),
  namespace: text('Space within which names are unique; a DNS label. Empty means default; cannot be updated.'),
  ownerReferences: mapList(
    { ...ownerReference, 'x-kubernetes-map-type': 'atomic' },
    ['uid'],
    'Objects that this object depends on. When all are deleted, the server deletes this object.',
  ),
  resourceVersion: text('Opaque version for optimistic concurrency and watch. Pass it back unmodified.'),
  selfLink: text('No longer populated.', { deprecated: true }),
  uid: text('Unique in time and space. Set by the server; read-only.'),
}) as Schema

const wholes = new WeakMap<Kind, Schema>()

export function wholeSchema(kind: Kind): Schema {
  const known = wholes.get(kind)
  if (known) return known
  const whole: Schema = {
    type: 'object',
    description: kind.description,
    properties: {
      apiVersion: text('Versioned schema of this representation, <group>/<version>.') as Schema,
      kind: text('The kind of this object. Optional if the URL determines it.') as Schema,
      metadata: metadataSchema,
      ...kind.fields,
    },
  }
  wholes.set(kind, whole)
  return whole
}
