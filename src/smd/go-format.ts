// Formats values like Go in the type errors of Kubernetes, so that messages match its documentation.

import { isObject, type Json } from '../api/object.ts'

/** Go's `%v` of a value that came from JSON. */
export function printGo(value: Json): string {
  return `&{${plain(value)}}`
}

/** Go's `%#v` of the same. */
export function printGoSyntax(value: Json): string {
  return `&value.valueUnstructured{Value:${syntax(value)}}`
}

/** Go's `%T` of the same. */
export function printGoType(value: Json): string {
  if (value === null) return '<nil>'
  if (Array.isArray(value)) return '[]interface {}'
  if (isObject(value)) return 'map[string]interface {}'
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64'
  return typeof value === 'string' ? 'string' : 'bool'
}

function plain(value: Json): string {
  if (value === null) return '<nil>'
  if (Array.isArray(value)) return `[${value.map(plain).join(' ')}]`
  if (!isObject(value)) return String(value)
  const parts = Object.keys(value).sort()
  return `map[${parts.map(key => `${key}:${plain(value[key]!)}`).join(' ')}]`
}

function syntax(value: Json): string {
  if (value === null) return 'interface {}(nil)'
  if (Array.isArray(value)) return `[]interface {}{${value.map(syntax).join(', ')}}`
  if (!isObject(value)) return typeof value === 'string' ? JSON.stringify(value) : String(value)
  const parts = Object.keys(value).sort()
  return `map[string]interface {}{${parts.map(key => `${JSON.stringify(key)}:${syntax(value[key]!)}`).join(', ')}}`
}
