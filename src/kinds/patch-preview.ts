// PatchPreview: evaluates patches of a vcluster.yaml on one object. Not stored: the result is in the response (D70).

import { type FieldError, invalidValue, notSupported, required, tooLong, tooMany } from '../api/errors.ts'
import { defineKind } from '../api/kind.ts'
import { dnsLabel } from '../api/names.ts'
import { isObject, type Json, type JsonObject } from '../api/object.ts'
import { flag, integer, list, longText, oneOf, type Static, struct, type TSchema, text } from '../api/schema.ts'
import { review } from './self-reviews.ts'

const open = { 'x-kubernetes-preserve-unknown-fields': true } as const
/** An object of any shape, or any value. */
const anyObject = (description: string) => ({ type: 'object', description, ...open }) as unknown as TSchema
const anyValue = (description: string) => ({ description, ...open }) as unknown as TSchema

const maxBytes = 256 * 1024
const maxPatches = 100
const [defaultRounds, maxRounds] = [10, 20]

const patch = struct('A patch, as in sync.toHost.endpoints.patches.', {
  path: text('Path of the values; "" is the whole object.'),
  expression: longText('JavaScript expression for the direction to the host.'),
  reverseExpression: longText('JavaScript expression for the direction to the virtual cluster.'),
  reference: anyObject('Rewrites a reference to another object.'),
  labels: anyObject('Rewrites a label selector.'),
})

const spec = struct(
  'The object and the patches.',
  {
    object: anyObject('Endpoints or EndpointSlice: of the virtual cluster, or of the host with direction toVirtual.'),
    patches: list(patch, 'The patches. They replace those of config.', { maxItems: maxPatches }),
    direction: oneOf(['toHost', 'toVirtual'], 'The direction of the sync.', { default: 'toHost' }),
    vcluster: struct('The virtual cluster.', {
      name: text('Its name. Defaults to my-vcluster.'),
      namespace: text('Its namespace on the host. Defaults to my-namespace.'),
    }),
    hostObject: anyObject('With direction toHost: the existing object on the host.'),
    virtualObject: anyObject('With direction toVirtual: the existing object of the virtual cluster.'),
    config: anyObject('The content of a vcluster.yaml, with its patches.'),
    syncReferences: list(text(''), 'Kinds that the syncer gets with --sync-references.'),
    maxRounds: integer(`Maximum rounds of the fixpoint, from 1 to ${maxRounds}.`, { default: defaultRounds }),
  },
  ['object'],
)

const position = {
  line: integer('Line in the text of the field, from 1.'),
  column: integer('Column, from 1.'),
}
const problem = struct('Why the syncer would not write the object.', {
  reason: longText('Machine-readable reason, such as InvalidPatch, PatchFailed, NotSynced or TimeLimit.'),
  message: longText('Human-readable message.'),
  patch: integer('Index of the patch.'),
  field: text('Field of the patch.'),
  path: text('Path in the object.'),
  ...position,
})
const staticProblem = struct('An error in a patch or in the configuration.', {
  patch: integer('Index of the patch; absent: the error is in the configuration.'),
  field: text('Field of the patch, or path in the configuration.'),
  message: longText('Human-readable message.'),
  ...position,
})
const change = struct('A changed value.', {
  path: text('Path of the value.'),
  before: anyValue('The value before.'),
  after: anyValue('The value after; absent: it was removed.'),
})
const trace = list(
  struct('The effect of one patch.', {
    patch: integer('Index of the patch.'),
    path: text('Path of the patch.'),
    changes: list(change, 'Changed values.'),
    unchanged: list(text(''), 'Matched paths whose value did not change.'),
    skipped: list(
      struct('A skipped match.', { path: text('Path of the value.'), reason: longText('Why it was skipped.') }),
      'Paths that the patch does not apply to.',
    ),
    unmatched: flag('Whether the patch matches nothing in this object.'),
    milliseconds: anyValue('Duration of the patch.'),
    error: struct('The error that ended the preview.', {
      message: longText('Human-readable message.'),
      path: text('Path of the value.'),
      field: text('Field of the patch.'),
      ...position,
    }),
  }),
  'The effect of each patch, in the order of their application.',
)
const referencedObjects = list(
  struct('A referenced object.', {
    path: text('Path of the reference.'),
    apiVersion: text('API version of the object.'),
    kind: text('Kind of the object.'),
    namespace: text('Namespace in the virtual cluster.'),
    name: text('Name in the virtual cluster.'),
    hostNamespace: text('Namespace on the host.'),
    hostName: text('Name on the host.'),
  }),
  'Objects that the object refers to.',
)
const result = {
  object: anyObject('The object that the syncer would write; with a problem, its state at the failure.'),
  plain: anyObject('The object without patches.'),
  problem,
  trace,
  referencedObjects,
  notes: list(text(''), 'Hints about results that may be unexpected.'),
}

const status = struct('Result of the preview.', {
  ...result,
  problems: list(staticProblem, 'All errors that were found before anything ran.'),
  reverse: struct('The opposite direction, applied to the result.', result),
  roundTrip: struct('Whether the opposite direction restores the labels and annotations.', {
    equal: flag('Whether it does.'),
    differences: list(change, 'Values that differ.'),
    values: list(
      struct('Result of one patch with the values of the object and generated ones.', {
        patch: integer('Index of the patch.'),
        path: text('Path of the patch.'),
        passed: integer('Values that the reverse expression restores.'),
        rejected: integer('Values that the expression rejects.'),
        broken: list(
          struct('A value that is not restored.', {
            value: anyValue('The value.'),
            there: anyValue('The value on the host.'),
            back: anyValue('The value after both directions, or the error.'),
          }),
          'Values that are not restored.',
        ),
        skipped: longText('Why the patch was not checked.'),
      }),
      'Results by patch.',
    ),
  }),
  fixpoint: struct('Both directions, applied again and again.', {
    settled: flag('Whether a round changed nothing.'),
    rounds: integer('Number of rounds.'),
    problem,
    changing: list(
      struct('A value that keeps changing.', {
        side: text('host or virtual.'),
        path: text('Path of the value.'),
        patches: list(integer(''), 'Indexes of the patches that change it.'),
        values: list(anyValue(''), 'Its last values, newest last.'),
      }),
      'Values that changed in the last round.',
    ),
  }),
})

export const PatchPreview = defineKind({
  ...review,
  group: 'management.platform.sh',
  kind: 'PatchPreview',
  plural: 'patchpreviews',
  singular: 'patchpreview',
  description:
    'PatchPreview shows what the patches of a vcluster.yaml do to an object, in both directions, and whether they settle.',
  spec,
  status,
  validate: next => (next.spec === undefined ? [required('spec', 'object and patches')] : checkSpec(next.spec)),
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'PatchPreview',
    spec: {
      object: {
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata: { name: 'web', namespace: 'default', labels: { app: 'web' } },
      },
      patches: [{ path: 'metadata.labels.app', expression: '"x-" + value', reverseExpression: 'value.slice(2)' }],
    },
  },
})

function checkSpec(given: Static<typeof spec>): FieldError[] {
  const { object, patches = [], vcluster = {}, maxRounds: rounds = defaultRounds } = given
  // A large body is not looked at further.
  if (JSON.stringify(given).length > maxBytes) return [tooLong('spec', maxBytes)]
  const objects = { hostObject: given.hostObject, virtualObject: given.virtualObject } as JsonObject
  return [
    ...checkObject('spec.object', object as Json | undefined, true),
    ...Object.entries(objects).flatMap(([key, value]) => checkObject(`spec.${key}`, value, false)),
    ...(given.config == null || isObject(given.config as Json)
      ? []
      : [invalidValue('spec.config', null, 'must be an object')]),
    ...(patches.length > maxPatches ? [tooMany('spec.patches', patches.length, maxPatches)] : []),
    ...(['name', 'namespace'] as const).flatMap(key =>
      vcluster[key] === undefined
        ? []
        : dnsLabel(vcluster[key]).map(why => invalidValue(`spec.vcluster.${key}`, vcluster[key], why)),
    ),
    ...(rounds < 1 || rounds > maxRounds
      ? [invalidValue('spec.maxRounds', rounds, `must be a number from 1 to ${maxRounds}`)]
      : []),
  ]
}

const types = ['v1/Endpoints', 'discovery.k8s.io/v1/EndpointSlice']

function checkObject(field: string, value: Json | undefined, isRequired: boolean): FieldError[] {
  if (value === undefined || value === null) return isRequired ? [required(field, 'Endpoints or EndpointSlice')] : []
  if (!isObject(value)) return [invalidValue(field, null, 'must be an object')]
  const type = `${value['apiVersion']}/${value['kind']}`
  if (!types.includes(type)) return [notSupported(field, type.slice(0, 100), types)]
  const { metadata } = value
  if (!isObject(metadata) || typeof metadata['name'] !== 'string' || typeof metadata['namespace'] !== 'string')
    return [required(`${field}.metadata`, 'name and namespace: the name on the other side derives from them')]
  return []
}
