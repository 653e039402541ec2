// Limits the young generation of V8 while the server starts.

import { setFlagsFromString } from 'node:v8'

/**
 * Objects that are loaded at startup stay in memory, so V8 would grow the young generation and keep it: over 100 MB
 * without use. The returned function ends the limit.
 */
export function keepNurserySmall(): () => void {
  setFlagsFromString('--semi-space-growth-factor=1')
  return () => setFlagsFromString('--semi-space-growth-factor=2')
}
