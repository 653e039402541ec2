// JSON Pointers (RFC 6901), and how many segments the pointers of a JSON Patch have. json-patch.ts and the server's limits use it.

import { isObject, type Json } from './object.ts'

/** The steps of a JSON Pointer (RFC 6901); undefined if it is not one. */
export function parsePointer(text: string): string[] | undefined {
  if (text === '') return []
  if (!text.startsWith('/') || /~(?![01])/.test(text)) return undefined
  const steps = text.slice(1).split('/')
  return text.includes('~') ? steps.map(step => step.replaceAll('~1', '/').replaceAll('~0', '~')) : steps
}

export function formatPointer(steps: readonly string[]): string {
  return steps.map(step => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** Whether all pointers together have more segments and escapes than `most`: these cost more than their bytes. */
export function hasMoreSegments(patch: Json, most: number): boolean {
  let left = most
  for (const operation of Array.isArray(patch) ? (patch as readonly Json[]) : [])
    for (const pointer of isObject(operation) ? [operation['path'], operation['from']] : [])
      for (const sign of typeof pointer === 'string' ? ['/', '~'] : [])
        for (let at = (pointer as string).indexOf(sign); at !== -1; at = (pointer as string).indexOf(sign, at + 1))
          if (--left < 0) return true
  return false
}
