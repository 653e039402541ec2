// Encodes an OpenAPI v2 document in protobuf, for kubectl. The field numbers are those of gnostic's OpenAPIv2.proto.
// A key without a field number is an error, so that no part of the document is lost.

import type { Json, JsonObject } from '../api/object.ts'

type Encode = (field: number, value: Json) => Buffer
type Shape = {
  readonly keys: { readonly [key: string]: readonly [field: number, encode: Encode] }
  /** Field of the keys that begin with `x-`. */
  readonly extensions?: number
}

const varint = (value: number): Buffer => {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80)
  return Buffer.from([...bytes, rest])
}
const tag = (field: number, wire: number) => varint(field * 8 + wire)
const bytes = (field: number, value: Buffer) => Buffer.concat([tag(field, 2), varint(value.length), value])

const text: Encode = (field, value) => bytes(field, Buffer.from(value as string))
const flag: Encode = (field, value) => Buffer.concat([tag(field, 0), varint(value === true ? 1 : 0)])
const double: Encode = (field, value) => {
  const eight = Buffer.alloc(8)
  eight.writeDoubleLE(value as number)
  return Buffer.concat([tag(field, 1), eight])
}
/** gnostic.Any: a value as YAML, which JSON is. */
const any: Encode = (field, value) => bytes(field, text(2, `${JSON.stringify(value)}\n`))

const many =
  (encode: Encode): Encode =>
  (field, values) =>
    Buffer.concat((values as readonly Json[]).map(value => encode(field, value)))

/** Wraps a value in a message with one field. */
const within =
  (inner: number, encode: Encode): Encode =>
  (field, value) =>
    bytes(field, encode(inner, value))

/** A map is a list of entries, in a message of its own. */
const entry = (field: number, name: string, value: Buffer) => bytes(field, Buffer.concat([text(1, name), value]))
const map =
  (inner: number, encode: Encode): Encode =>
  (field, value) =>
    bytes(
      field,
      Buffer.concat(
        Object.entries(value as JsonObject).map(([name, one]) => entry(inner, name, encode(2, one as Json))),
      ),
    )

/** Takes a function, because schemas contain schemas. */
const message =
  (shape: () => Shape): Encode =>
  (field, value) =>
    bytes(field, encodeMessage(shape(), value as JsonObject))

function encodeMessage({ keys, extensions }: Shape, object: JsonObject): Buffer {
  return Buffer.concat(
    Object.entries(object).map(([key, value]) => {
      if (extensions !== undefined && key.startsWith('x-')) return entry(extensions, key, any(2, value as Json))
      const known = Object.hasOwn(keys, key) ? keys[key] : undefined
      if (!known) throw new Error(`OpenAPI key ${key} has no field in protobuf`)
      const [field, encode] = known
      return encode(field, value as Json)
    }),
  )
}

const schema = message(() => schemaShape)
const schemaShape: Shape = {
  extensions: 31,
  keys: {
    $ref: [1, text],
    format: [2, text],
    description: [4, text],
    default: [5, any],
    minimum: [9, double],
    required: [19, many(text)],
    enum: [20, many(any)],
    additionalProperties: [21, within(1, schema)],
    type: [22, within(1, text)],
    items: [23, within(1, schema)],
    properties: [25, map(1, schema)],
  },
}

const bodyParameter = message(() => ({
  keys: { name: [2, text], in: [3, text], required: [4, flag], schema: [5, schema] },
}))
const plainParameter = (type: number, uniqueItems: number) =>
  message(() => ({
    keys: { required: [1, flag], in: [2, text], name: [4, text], type: [type, text], uniqueItems: [uniqueItems, flag] },
  }))
/** Parameter, then body or other, then the place. */
const places: { readonly [place: string]: Encode } = {
  body: within(1, within(1, bodyParameter)),
  query: within(1, within(2, within(3, plainParameter(6, 20)))),
  path: within(1, within(2, within(4, plainParameter(5, 19)))),
}
const parameter: Encode = (field, value) => {
  const encode = places[(value as JsonObject).in as string]
  if (!encode) throw new Error(`OpenAPI parameter in ${(value as JsonObject).in} has no field in protobuf`)
  return encode(field, value)
}

const response = message(() => ({ keys: { description: [1, text], schema: [2, within(1, schema)] } }))
const operation = message(() => ({
  extensions: 13,
  keys: {
    description: [3, text],
    operationId: [5, text],
    produces: [6, many(text)],
    consumes: [7, many(text)],
    parameters: [8, many(parameter)],
    responses: [9, map(1, within(1, response))],
  },
}))
const pathItem = message(() => ({
  keys: {
    get: [2, operation],
    put: [3, operation],
    post: [4, operation],
    delete: [5, operation],
    patch: [8, operation],
  },
}))

const document: Shape = {
  keys: {
    swagger: [1, text],
    info: [2, message(() => ({ keys: { title: [1, text], version: [2, text] } }))],
    paths: [8, map(2, pathItem)],
    definitions: [9, map(1, schema)],
  },
}

export const openapiProtobuf = (openapi: JsonObject): Buffer => encodeMessage(document, openapi)
