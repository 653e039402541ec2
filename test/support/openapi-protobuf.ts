// Decodes OpenAPI v2 documents in protobuf to JSON, with the field numbers of gnostic's OpenAPIv2.proto. Unknown fields are errors.

import assert from 'node:assert/strict'
import { parse } from 'yaml'

type Object = { [key: string]: unknown }
type Field = { readonly number: number; readonly value: number | Buffer }
type Read = (bytes: Buffer) => unknown

/** Adds one field to the JSON object. */
type Put = (into: Object, value: number | Buffer) => void
type Message = { readonly [number: number]: Put }

function fieldsOf(bytes: Buffer): Field[] {
  const fields: Field[] = []
  let at = 0
  const varint = () => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes.readUInt8(at++)
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    const tag = varint()
    const [number, wire] = [Math.floor(tag / 8), tag % 8]
    if (wire === 0) fields.push({ number, value: varint() })
    else if (wire === 1) {
      fields.push({ number, value: bytes.readDoubleLE(at) })
      at += 8
    } else {
      assert.equal(wire, 2, `wire type ${wire}`)
      const length = varint()
      assert.ok(at + length <= bytes.length, 'a field is longer than its message')
      fields.push({ number, value: bytes.subarray(at, at + length) })
      at += length
    }
  }
  return fields
}

function read(bytes: Buffer, message: Message): Object {
  const out: Object = {}
  for (const { number, value } of fieldsOf(bytes)) {
    const put = message[number]
    assert.ok(put, `unknown field ${number} beside ${Object.keys(out)}`)
    put(out, value)
  }
  return out
}

const one =
  (key: string, how: Read): Put =>
  (into, value) => {
    assert.ok(!Object.hasOwn(into, key), `${key} is repeated`)
    into[key] = how(value as Buffer)
  }
const many =
  (key: string, how: Read): Put =>
  (into, value) => {
    into[key] = [...((into[key] as unknown[] | undefined) ?? []), how(value as Buffer)]
  }
const text: Read = bytes => bytes.toString()
const yaml: Read = bytes => parse((read(bytes, { 2: one('yaml', text) })['yaml'] as string) ?? '')
const number =
  (key: string): Put =>
  (into, value) => {
    into[key] = value
  }
const flag =
  (key: string): Put =>
  (into, value) => {
    into[key] = value === 1
  }
/** The only field of a message. */
const inside =
  (message: Message, key: string): Read =>
  bytes =>
    read(bytes, message)[key]
const entry =
  (how: Read): Put =>
  (into, value) => {
    const { name, value: found } = read(value as Buffer, { 1: one('name', text), 2: one('value', how) })
    assert.ok(!Object.hasOwn(into, name as string), `${name} is repeated`)
    into[name as string] = found
  }
const map =
  (number: number, how: Read): Read =>
  bytes =>
    read(bytes, { [number]: entry(how) })

const schema: Read = bytes =>
  read(bytes, {
    1: one('$ref', text),
    2: one('format', text),
    4: one('description', text),
    5: one('default', yaml),
    9: number('minimum'),
    19: many('required', text),
    20: many('enum', yaml),
    21: one('additionalProperties', inside({ 1: one('schema', schema) }, 'schema')),
    22: one('type', inside({ 1: one('value', text) }, 'value')),
    23: one('items', inside({ 1: one('schema', schema) }, 'schema')),
    25: one('properties', map(1, schema)),
    31: entry(yaml),
  })
const body: Read = bytes =>
  read(bytes, { 2: one('name', text), 3: one('in', text), 4: flag('required'), 5: one('schema', schema) })
const plain =
  (type: number, uniqueItems: number): Read =>
  bytes =>
    read(bytes, {
      1: flag('required'),
      2: one('in', text),
      4: one('name', text),
      [type]: one('type', text),
      [uniqueItems]: flag('uniqueItems'),
    })
/** The value of the only field that is set. */
const choice =
  (message: Message): Read =>
  bytes =>
    Object.values(read(bytes, message))[0]
const parameter = choice({
  1: one(
    'parameter',
    choice({
      1: one('body', body),
      2: one('other', choice({ 3: one('query', plain(6, 20)), 4: one('path', plain(5, 19)) })),
    }),
  ),
})
const response: Read = bytes =>
  read(bytes, { 1: one('description', text), 2: one('schema', inside({ 1: one('schema', schema) }, 'schema')) })
const operation: Read = bytes =>
  read(bytes, {
    3: one('description', text),
    5: one('operationId', text),
    6: many('produces', text),
    7: many('consumes', text),
    8: many('parameters', parameter),
    9: one('responses', map(1, choice({ 1: one('response', response) }))),
    13: entry(yaml),
  })
const methods = { 2: 'get', 3: 'put', 4: 'post', 5: 'delete', 8: 'patch' }
const path: Read = bytes =>
  read(bytes, Object.fromEntries(Object.entries(methods).map(([at, name]) => [at, one(name, operation)])))

export const readOpenApi = (bytes: Buffer): Object =>
  read(bytes, {
    1: one('swagger', text),
    2: one('info', own => read(own, { 1: one('title', text), 2: one('version', text) })),
    8: one('paths', map(2, path)),
    9: one('definitions', map(1, schema)),
  })
