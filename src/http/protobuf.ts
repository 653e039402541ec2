// Reads the few protobuf messages that kubectl insists on sending: the reviews about oneself (D4, wire §1.16).
// By hand: five messages of strings do not need a library, and nothing is ever written in this format.

import { badRequest } from '../api/errors.ts'
import { emptyMap, type Json } from '../api/object.ts'

type Shape = { readonly [field: number]: readonly [name: string, type: 'string' | Shape] }

const envelope: Shape = { 1: ['type', { 1: ['apiVersion', 'string'], 2: ['kind', 'string'] }] }
const metadata: Shape = { 1: ['name', 'string'], 2: ['generateName', 'string'], 3: ['namespace', 'string'] }
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

const messages: { readonly [type: string]: Shape } = {
  'authorization.k8s.io/v1 SelfSubjectAccessReview': {
    1: ['metadata', metadata],
    2: ['spec', { 1: ['resourceAttributes', resourceAttributes], 2: ['nonResourceAttributes', nonResourceAttributes] }],
  },
  'authorization.k8s.io/v1 SelfSubjectRulesReview': {
    1: ['metadata', metadata],
    2: ['spec', { 1: ['namespace', 'string'] }],
  },
  'authentication.k8s.io/v1 SelfSubjectReview': { 1: ['metadata', metadata] },
}

const magic = Buffer.from([0x6b, 0x38, 0x73, 0x00])

/** The object inside a Kubernetes protobuf envelope, as if it had come as JSON. */
export function readProtobuf(bytes: Buffer): Json {
  if (!bytes.subarray(0, 4).equals(magic)) throw broken('it does not begin with k8s\\0')
  const wrapped = bytes.subarray(4)
  const { type } = readMessage(wrapped, envelope) as { type?: { apiVersion?: string; kind?: string } }
  const name = `${type?.apiVersion ?? ''} ${type?.kind ?? ''}`
  const shape = Object.hasOwn(messages, name) ? messages[name] : undefined
  if (!shape) throw broken(`${name.trim() || 'a message without a type'} is not read in this format; send JSON`)
  const raw = fields(wrapped).find(field => field.number === 2)?.bytes ?? Buffer.alloc(0)
  return { ...readMessage(raw, shape), apiVersion: type?.apiVersion ?? '', kind: type?.kind ?? '' }
}

function readMessage(bytes: Buffer, shape: Shape): { [key: string]: Json } {
  const out = emptyMap()
  for (const field of fields(bytes)) {
    const known = shape[field.number]
    if (!known || !field.bytes) continue
    const [name, type] = known
    if (type !== 'string') out[name] = readMessage(field.bytes, type)
    else if (field.bytes.length) out[name] = field.bytes.toString()
  }
  return out
}

type Field = { readonly number: number; readonly bytes: Buffer | undefined }

function fields(bytes: Buffer): Field[] {
  const found: Field[] = []
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let shift = 0; shift < 56; shift += 7) {
      const byte = bytes[at++]
      if (byte === undefined) throw broken('it ends in the middle of a number')
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
    throw broken('a number is too long')
  }
  while (at < bytes.length) {
    const tag = varint()
    const wire = tag & 7
    if (wire === 0) varint()
    else if (wire === 1 || wire === 5) at += wire === 1 ? 8 : 4
    else if (wire !== 2) throw broken(`wire type ${wire} is not known`)
    const length = wire === 2 ? varint() : 0
    if (at + length > bytes.length) throw broken('a field is longer than the message')
    found.push({ number: tag >>> 3, bytes: wire === 2 ? bytes.subarray(at, at + length) : undefined })
    at += length
  }
  return found
}

const broken = (why: string) => badRequest(`the protobuf body cannot be read: ${why}`)
