// Writes objects in Kubernetes' protobuf envelope, with the table that the server uses for reading.

import { isObject, type Json, type JsonObject } from '../../../src/api/object.ts'
import { messages } from '../../../src/http/protobuf.ts'

type Shape = (typeof messages)[string]
type Type = Shape[number][1]

/** undefined: the server does not read this message. Fields that the message does not have are left out. */
export function writeProtobuf(object: JsonObject): Buffer | undefined {
  const { apiVersion, kind } = object as { apiVersion: string; kind: string }
  const shape = messages[`${apiVersion} ${kind}`]
  if (!shape) return undefined
  const type = Buffer.concat([field(1, Buffer.from(apiVersion)), field(2, Buffer.from(kind))])
  return Buffer.concat([Buffer.from('k8s\0'), field(1, type), field(2, message(object, shape))])
}

function message(object: JsonObject, shape: Shape): Buffer {
  return Buffer.concat(
    Object.entries(shape).flatMap(([number, [name, type]]) => {
      const value = object[name]
      return value === undefined || value === null ? [] : write(Number(number), value, type)
    }),
  )
}

function write(number: number, value: Json, type: Type): Buffer[] {
  if (type === 'bool') return [Buffer.from([...varint(number * 8), value ? 1 : 0])]
  if (type === 'part') return []
  if (type === 'string') return [field(number, Buffer.from(String(value)))]
  if (type === 'strings') return listOf(value).map(one => field(number, Buffer.from(String(one))))
  if (type === 'map')
    return Object.entries(isObject(value) ? value : {}).map(([key, one]) =>
      field(number, Buffer.concat([field(1, Buffer.from(key)), field(2, Buffer.from(String(one)))])),
    )
  if (isRepeated(type)) return listOf(value).map(one => field(number, message(one as JsonObject, type[0])))
  return isObject(value) ? [field(number, message(value, type))] : []
}

const isRepeated = (type: Type): type is readonly [Shape] => Array.isArray(type)
const listOf = (value: Json): readonly Json[] => (Array.isArray(value) ? (value as readonly Json[]) : [])

function field(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes])
}

function varint(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    bytes.push(rest >= 128 ? (rest % 128) + 128 : rest)
    if (rest < 128) return bytes
  }
}
