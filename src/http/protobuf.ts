// Reads the few protobuf messages that kubectl insists on sending: the reviews and the RBAC kinds (D4, wire §1.16).
// By hand: a handful of messages of strings do not need a library, and no object is ever written in this format.

import { badRequest } from '../api/errors.ts'
import { TooManyValues } from '../api/json-reader.ts'
import { emptyMap, type Json } from '../api/object.ts'

type Type = 'string' | 'strings' | 'bool' | 'map' | 'part' | Shape | readonly [Shape]
type Shape = { readonly [field: number]: readonly [name: string, type: Type] }

const envelope: Shape = { 1: ['type', { 1: ['apiVersion', 'string'], 2: ['kind', 'string'] }], 2: ['raw', 'part'] }
const mapEntry: Shape = { 1: ['key', 'string'], 2: ['value', 'string'] }
const ownerReference: Shape = {
  1: ['kind', 'string'],
  3: ['name', 'string'],
  4: ['uid', 'string'],
  5: ['apiVersion', 'string'],
  6: ['controller', 'bool'],
  7: ['blockOwnerDeletion', 'bool'],
}
const metadata: Shape = {
  1: ['name', 'string'],
  2: ['generateName', 'string'],
  3: ['namespace', 'string'],
  5: ['uid', 'string'],
  6: ['resourceVersion', 'string'],
  11: ['labels', 'map'],
  12: ['annotations', 'map'],
  13: ['ownerReferences', [ownerReference]],
  14: ['finalizers', 'strings'],
}
const selector: Shape = { 1: ['rawSelector', 'string'] }
const resourceAttributes: Shape = {
  1: ['namespace', 'string'],
  2: ['verb', 'string'],
  3: ['group', 'string'],
  4: ['version', 'string'],
  5: ['resource', 'string'],
  6: ['subresource', 'string'],
  7: ['name', 'string'],
  8: ['fieldSelector', selector],
  9: ['labelSelector', selector],
}
const nonResourceAttributes: Shape = { 1: ['path', 'string'], 2: ['verb', 'string'] }
const attributes: Shape = {
  1: ['resourceAttributes', resourceAttributes],
  2: ['nonResourceAttributes', nonResourceAttributes],
}
const rules: readonly [Shape] = [
  {
    1: ['verbs', 'strings'],
    2: ['apiGroups', 'strings'],
    3: ['resources', 'strings'],
    4: ['resourceNames', 'strings'],
    5: ['nonResourceURLs', 'strings'],
  },
]
const requirement: Shape = { 1: ['key', 'string'], 2: ['operator', 'string'], 3: ['values', 'strings'] }
const labelSelector: Shape = { 1: ['matchLabels', 'map'], 2: ['matchExpressions', [requirement]] }
const binding: Shape = {
  1: ['metadata', metadata],
  2: [
    'subjects',
    [{ 1: ['kind', 'string'], 2: ['apiGroup', 'string'], 3: ['name', 'string'], 4: ['namespace', 'string'] }],
  ],
  3: ['roleRef', { 1: ['apiGroup', 'string'], 2: ['kind', 'string'], 3: ['name', 'string'] }],
}

export const messages: { readonly [type: string]: Shape } = {
  'authorization.k8s.io/v1 SelfSubjectAccessReview': { 1: ['metadata', metadata], 2: ['spec', attributes] },
  'authorization.k8s.io/v1 SubjectAccessReview': {
    1: ['metadata', metadata],
    2: ['spec', { ...attributes, 3: ['user', 'string'], 4: ['groups', 'strings'], 6: ['uid', 'string'] }],
  },
  'authorization.k8s.io/v1 SelfSubjectRulesReview': {
    1: ['metadata', metadata],
    2: ['spec', { 1: ['namespace', 'string'] }],
  },
  'authentication.k8s.io/v1 SelfSubjectReview': { 1: ['metadata', metadata] },
  'authentication.k8s.io/v1 TokenReview': {
    1: ['metadata', metadata],
    2: ['spec', { 1: ['token', 'string'], 2: ['audiences', 'strings'] }],
  },
  'rbac.authorization.k8s.io/v1 Role': { 1: ['metadata', metadata], 2: ['rules', rules] },
  'rbac.authorization.k8s.io/v1 ClusterRole': {
    1: ['metadata', metadata],
    2: ['rules', rules],
    3: ['aggregationRule', { 1: ['clusterRoleSelectors', [labelSelector]] }],
  },
  'rbac.authorization.k8s.io/v1 RoleBinding': binding,
  'rbac.authorization.k8s.io/v1 ClusterRoleBinding': binding,
}

const magic = Buffer.from([0x6b, 0x38, 0x73, 0x00])

type Limits = { readonly maxValues: number; readonly maxText: number }

/** The object inside a Kubernetes protobuf envelope, as if it had come as JSON. Throws TooManyValues beyond a limit. */
export function readProtobuf(bytes: Buffer, { maxValues, maxText }: Limits): Json {
  if (!bytes.subarray(0, magic.length).equals(magic)) throw broken('it does not start with k8s\\0')
  if (bytes.length > maxText) throw new TooManyValues(`more than ${maxText} bytes of protobuf`, 1, 1)
  const reader: Reader = { bytes, at: magic.length, maxValues, left: maxValues }
  const { type, raw } = readMessage(reader, bytes.length, envelope) as {
    type?: { apiVersion?: string; kind?: string }
    raw?: Part
  }
  const name = `${type?.apiVersion ?? ''} ${type?.kind ?? ''}`
  const shape = Object.hasOwn(messages, name) ? messages[name] : undefined
  if (!shape) throw broken(`${name.trim() || 'a message without a type'} is not read in this format; send JSON`)
  reader.at = raw?.start ?? 0
  return { ...readMessage(reader, raw?.end ?? 0, shape), apiVersion: type?.apiVersion ?? '', kind: type?.kind ?? '' }
}

/** Reads in place: a Buffer for every field would cost more than the rest. `left`: how many more values the body may hold. */
type Reader = { readonly bytes: Buffer; readonly maxValues: number; at: number; left: number }
/** A field that is read later. */
type Part = { readonly start: number; readonly end: number }

function readMessage(reader: Reader, end: number, shape: Shape): { [key: string]: Json } {
  const out = emptyMap()
  while (reader.at < end) {
    const tag = readVarint(reader, end)
    const wire = tag & 7
    const known = shape[tag >>> 3]
    if (wire === 0) {
      const value = readVarint(reader, end)
      if (known?.[1] === 'bool') out[known[0]] = value !== 0
    } else if (wire === 2) {
      const length = readVarint(reader, end)
      const next = reader.at + length
      if (next > end) throw broken('a field is longer than the message')
      if (--reader.left < 0) throw new TooManyValues(`more than ${reader.maxValues} values`, 1, reader.at)
      if (known) put(out, known[0], known[1], reader, next)
      reader.at = next
    } else if (wire === 1 || wire === 5) {
      reader.at += wire === 1 ? 8 : 4
      if (reader.at > end) throw broken('a field is longer than the message')
    } else throw broken(`unknown wire type ${wire}`)
  }
  return out
}

function readVarint(reader: Reader, end: number): number {
  let value = 0
  for (let scale = 1; scale < 2 ** 56; scale *= 128) {
    const byte = reader.at < end ? reader.bytes[reader.at++] : undefined
    if (byte === undefined) throw broken('it ends in the middle of a number')
    value += (byte & 0x7f) * scale
    if (byte < 0x80) return value
  }
  throw broken('a number is too long')
}

const readText = ({ bytes, at }: Reader, end: number) => bytes.toString('utf8', at, end)

function put(out: { [key: string]: Json }, name: string, type: Type, reader: Reader, end: number): void {
  if (type === 'string') {
    if (end > reader.at) out[name] = readText(reader, end)
  } else if (type === 'strings') append(out, name, readText(reader, end))
  else if (type === 'part') out[name] = { start: reader.at, end }
  else if (type === 'map') {
    const { key = '', value = '' } = readMessage(reader, end, mapEntry)
    const map = (out[name] ?? emptyMap()) as { [key: string]: Json }
    map[key as string] = value
    out[name] = map
  } else if (isRepeated(type)) append(out, name, readMessage(reader, end, type[0]))
  else if (typeof type === 'object') out[name] = readMessage(reader, end, type)
}

/** In place: a copy for every element would make a body of many small ones cost its square. */
function append(out: { [key: string]: Json }, name: string, value: Json): void {
  const list = out[name] as Json[] | undefined
  if (list) list.push(value)
  else out[name] = [value]
}

const isRepeated = (type: Type): type is readonly [Shape] => Array.isArray(type)

const broken = (why: string) => badRequest(`the protobuf body cannot be read: ${why}`)
