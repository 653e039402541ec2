// Evaluates patches on the server, in its sandbox.

import type { Json, JsonObject } from '../../api/object.ts'
import { kinds } from '../../kinds/index.ts'
import { patchText } from '../text/patches.tsx'
import { server } from './server.ts'

type Change = { readonly path: string; readonly before?: Json; readonly after?: Json }
type Problem = {
  readonly reason?: string
  readonly message: string
  readonly patch?: number
  readonly field?: string
  readonly path?: string
  readonly line?: number
  readonly column?: number
}

export type Trace = {
  readonly patch: number
  readonly path: string
  readonly changes?: readonly Change[]
  readonly unchanged?: readonly string[]
  readonly skipped?: readonly { readonly path: string; readonly reason: string }[]
  readonly unmatched?: boolean
  readonly milliseconds?: number
  readonly error?: Problem
}

export type Preview = {
  readonly object?: JsonObject
  readonly problem?: Problem
  readonly problems?: readonly Problem[]
  readonly trace?: readonly Trace[]
  readonly notes?: readonly string[]
  readonly reverse?: { readonly object?: JsonObject; readonly trace?: readonly Trace[]; readonly problem?: Problem }
  readonly roundTrip?: { readonly equal: boolean; readonly differences?: readonly Change[] }
  readonly fixpoint?: {
    readonly settled: boolean
    readonly rounds: number
    readonly changing?: readonly {
      readonly side: string
      readonly path: string
      readonly patches?: readonly number[]
      readonly values?: readonly Json[]
    }[]
  }
}

export type PreviewInput = {
  readonly object: JsonObject
  readonly patches: readonly JsonObject[]
  readonly direction: 'toHost' | 'toVirtual'
}

export async function preview(spec: PreviewInput): Promise<Preview> {
  const kind = kinds.find(one => one.kind === 'PatchPreview')
  if (!kind) throw new Error(patchText.notServed)
  const { object } = await server.create(kind, '', { spec } as unknown as JsonObject)
  return (object.status ?? {}) as unknown as Preview
}
