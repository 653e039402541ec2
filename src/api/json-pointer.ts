// Parses JSON Pointers (RFC 6901), and counts the segments of the pointers in a JSON Patch.

import { isObject, type Json } from './object.ts'

/** The segments of a JSON Pointer (RFC 6901); undefined if invalid. */
export function parsePointer(text: string): string[] | undefined {
  if (text === '') return []
  if (!text.startsWith('/') || /~(?![01])/.test(text)) return undefined
  const steps = text.slice(1).split('/')
  return text.includes('~') ? steps.map(step => step.replaceAll('~1', '/').replaceAll('~0', '~')) : steps
}

export function formatPointer(steps: readonly string[]): string {
  return steps.map(step => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** Whether all pointers together have more than `most` segments and escapes, which cost more than their bytes. */
export function hasMoreSegments(patch: Json, most: number): boolean {
  let left = most
  for (const operation of Array.isArray(patch) ? (patch as readonly Json[]) : [])
    for (const pointer of isObject(operation) ? [operation['path'], operation['from']] : [])
      for (const sign of typeof pointer === 'string' ? ['/', '~'] : [])
        for (let at = (pointer as string).indexOf(sign); at !== -1; at = (pointer as string).indexOf(sign, at + 1))
          if (--left < 0) return true
  return false
}
