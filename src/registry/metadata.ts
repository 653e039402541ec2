// Sets and validates metadata (SPEC §2.2, wire §1.9, §1.10).

import {
  cut,
  type FieldError,
  fieldForbidden,
  invalidValue,
  isEnough,
  maxErrors,
  required,
  tooLong,
} from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { dnsLabel, dnsSubdomain, dnsSubdomainPrefix, labelValue, pathSegment, qualifiedName } from '../api/names.ts'
import { keysOf, type Metadata, type OwnerReference } from '../api/object.ts'

type Sent = Metadata & { readonly selfLink?: string }

/** Metadata of a new object. Replaces the fields that only the server sets. */
export function newMetadata(sent: Metadata, set: { namespace: string; uid: string; now: string }): Metadata {
  // `delete` would make every later copy of the object slow.
  const {
    selfLink: _selfLink,
    resourceVersion: _resourceVersion,
    deletionTimestamp: _deletionTimestamp,
    deletionGracePeriodSeconds: _deletionGracePeriodSeconds,
    managedFields: _managedFields,
    namespace: _namespace,
    ...rest
  } = sent as Sent
  const own = { uid: set.uid, creationTimestamp: set.now, generation: 1 }
  return set.namespace ? { ...rest, ...own, namespace: set.namespace } : { ...rest, ...own }
}

const serverOwned = ['creationTimestamp', 'generateName', 'generation', 'resourceVersion'] as const
const immutable = ['name', 'namespace', 'uid', 'deletionTimestamp', 'deletionGracePeriodSeconds'] as const

/** Metadata of a replaced object. Keeps the stored values of immutable fields. */
export function nextMetadata(sent: Metadata, old: Metadata): Metadata {
  const {
    selfLink: _selfLink,
    creationTimestamp: _creationTimestamp,
    generateName: _generateName,
    generation: _generation,
    resourceVersion: _resourceVersion,
    ...rest
  } = sent as Sent
  const next: { [key: string]: unknown } = rest
  for (const field of serverOwned) if (old[field] !== undefined) next[field] = old[field]
  for (const field of immutable) if (next[field] === undefined && old[field] !== undefined) next[field] = old[field]
  return next as Metadata
}

export function checkMetadata(kind: Kind, next: Metadata, warn: (text: string) => void): FieldError[] {
  return [
    ...checkName(next, kind),
    ...(kind.namespaced
      ? dnsLabel(next.namespace ?? '').map(problem => invalidValue('metadata.namespace', next.namespace ?? '', problem))
      : []),
    ...checkLabels(next.labels),
    ...checkAnnotations(next.annotations),
    ...checkFinalizers(next.finalizers ?? [], warn),
    ...checkOwners(next.ownerReferences ?? []),
  ]
}

function checkName({ name, generateName }: Metadata, { nameRule, stored }: Kind): FieldError[] {
  const [check, checkPrefix] = nameRule === 'segment' ? [pathSegment, pathSegment] : [dnsSubdomain, dnsSubdomainPrefix]
  const prefix = generateName
    ? checkPrefix(generateName).map(problem => invalidValue('metadata.generateName', generateName, problem))
    : []
  if (!name) return prefix.length || !stored ? prefix : [required('metadata.name', 'name or generateName is required')]
  return [...prefix, ...check(name).map(problem => invalidValue('metadata.name', name, problem))]
}

function checkLabels(labels: Metadata['labels'] = {}): FieldError[] {
  const errors: FieldError[] = []
  for (const key of keysOf(labels)) {
    if (isEnough(errors)) break
    const value = labels[key] as string
    for (const problem of qualifiedName(key)) errors.push(invalidValue('metadata.labels', key, problem))
    for (const problem of labelValue(value)) errors.push(invalidValue('metadata.labels', value, problem))
  }
  return errors
}

const maxAnnotations = 256 * 1024

function checkAnnotations(annotations: Metadata['annotations'] = {}): FieldError[] {
  const errors: FieldError[] = []
  let bytes = 0
  for (const key of keysOf(annotations)) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(annotations[key] as string)
    if (bytes > maxAnnotations) return [...errors, tooLong('metadata.annotations', maxAnnotations)]
    if (!isEnough(errors))
      for (const problem of qualifiedName(key.toLowerCase()))
        errors.push(invalidValue('metadata.annotations', key, problem))
  }
  return errors
}

const ownFinalizers = ['orphan', 'foregroundDeletion']

function checkFinalizers(finalizers: readonly string[], warn: (text: string) => void): FieldError[] {
  const errors: FieldError[] = []
  for (const one of finalizers) {
    if (isEnough(errors)) return errors
    for (const problem of qualifiedName(one)) errors.push(invalidValue('metadata.finalizers', one, problem))
  }
  for (const one of finalizers.slice(0, maxErrors))
    if (!one.includes('/') && !ownFinalizers.includes(one))
      warn(
        `metadata.finalizers: "${one}": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`,
      )
  if (!ownFinalizers.every(one => finalizers.includes(one))) return errors
  return [
    ...errors,
    invalidValue('metadata.finalizers', finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'),
  ]
}

function checkOwners(references: readonly OwnerReference[]): FieldError[] {
  const errors: FieldError[] = []
  for (const [index, reference] of references.entries()) {
    if (isEnough(errors)) return errors
    for (const field of ['apiVersion', 'kind', 'name', 'uid'] as const)
      if (!reference[field]) errors.push(required(`metadata.ownerReferences[${index}].${field}`, 'must not be empty'))
  }
  const controllers = references.filter(one => one.controller)
  if (controllers.length > 1) {
    const names = controllers.slice(0, maxErrors).map(one => `${one.kind}/${one.name}`)
    const found = cut(`${names.slice(0, -1).join(', ')} and ${names.at(-1)}`)
    const message = `Only one reference can have Controller set to true. Found "true" in references for ${found}`
    errors.push(invalidValue('metadata.ownerReferences', references, message))
  }
  return errors
}

/** Validates a change of metadata. */
export function checkMetadataChange(next: Metadata, old: Metadata): FieldError[] {
  const errors: FieldError[] = []
  for (const field of immutable)
    if (next[field] !== old[field]) errors.push(invalidValue(`metadata.${field}`, next[field], 'field is immutable'))
  if (old.deletionTimestamp) {
    const added = (next.finalizers ?? []).filter(one => !old.finalizers?.includes(one))
    if (added.length)
      errors.push(
        fieldForbidden(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers ${cut(`[]string{${added.map(one => JSON.stringify(one)).join(', ')}}`)}`,
        ),
      )
  }
  return errors
}

const identityOf = ({ uid, name, kind, apiVersion, controller, blockOwnerDeletion }: OwnerReference) =>
  [uid, name, kind, apiVersion, controller, blockOwnerDeletion].join('\0')

/** Removes exact duplicates, with a warning. */
export function uniqueOwners(metadata: Metadata, warn: (text: string) => void): Metadata {
  const references = metadata.ownerReferences
  if (!references) return metadata
  const kept = new Map(references.map(one => [identityOf(one), one]))
  if (kept.size === references.length) return metadata
  warn('.metadata.ownerReferences contains duplicate entries; API server dedups owner references')
  return { ...metadata, ownerReferences: [...kept.values()] }
}
