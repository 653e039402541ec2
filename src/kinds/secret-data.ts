// Validates secret data of SharedSecret and ProjectSecret (D7, D29).

import { type FieldError, invalidSecret, invalidValue, isEnough } from '../api/errors.ts'
import { longText, mapOf } from '../api/schema.ts'

export const data = mapOf(
  longText('', { format: 'byte' }),
  'Secret data. Keys consist of alphanumeric characters, -, _ or .; values are base64 (RFC 4648 section 4) of any bytes.',
  { maxProperties: 4096 },
)

export const stringData = mapOf(
  longText(''),
  'Write-only: values as text. The server merges them over data, stores them as base64, and never shows this field.',
  { maxProperties: 4096 },
)
export const textForms = { 'spec.stringData': 'spec.data' } as const

const keyPattern = /^[-._a-zA-Z0-9]+$/
export const isDataKey = (key: string): boolean => key.length <= 253 && keyPattern.test(key)

/** In decoded bytes. Larger stored data may stay (D72). */
const maxBytes = 512 * 1024

type Data = { readonly [key: string]: string }

/** All errors of a data map. Never repeats a value in a message. */
export function checkData(map: Data | undefined, old?: Data): FieldError[] {
  const errors: FieldError[] = []
  for (const key of Object.keys(map ?? {})) {
    if (!isEnough(errors) && !isDataKey(key))
      errors.push(
        invalidValue(
          'spec.data',
          key,
          "a key is 1 to 253 alphanumeric characters, '-', '_' or '.' (regex used for validation is '[-._a-zA-Z0-9]+')",
        ),
      )
  }
  const bytes = decodedBytes(map)
  if (bytes > maxBytes && bytes > decodedBytes(old))
    errors.push(invalidSecret('spec.data', `${Math.ceil(bytes)} bytes decoded; may not be more than ${maxBytes}`))
  return errors
}

function decodedBytes(map: Data = {}): number {
  let bytes = 0
  for (const value of Object.values(map))
    bytes += (value.length / 4) * 3 - (value.endsWith('==') ? 2 : value.endsWith('=') ? 1 : 0)
  return bytes
}

export const lastApplied = 'metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]'
