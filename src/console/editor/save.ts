// Saves an edit: a patch against the version that the edit started from. Changes of others to other fields are kept.

import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Json, JsonObject, Ref, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { conflicts, editable, mergePatch, type Path } from './difference.ts'

export type Edit = {
  readonly kind: Kind
  readonly ref: Ref
  /** The object that the edit started from. */
  readonly base: Resource
  readonly edited: JsonObject
  readonly dryRun?: boolean
  readonly warn?: (text: string) => void
}

export type Saved =
  | { readonly result: 'saved'; readonly object: Resource }
  | { readonly result: 'unchanged' }
  /** Somebody changed the same fields. The edit continues from `theirs`. */
  | { readonly result: 'conflict'; readonly theirs: Resource; readonly paths: readonly Path[] }

const maxAttempts = 5
export const fieldManager = 'console'

type Server = Pick<Resources, 'get' | 'patch'>

/** `read`: how the object is read; secrets are read without their data. */
export async function save(server: Server, read: Server['get'], edit: Edit): Promise<Saved> {
  const { kind, ref, base, edited, dryRun = false, warn } = edit
  const from = editable(base as unknown as JsonObject)
  const change = mergePatch(from, edited)
  if (change === undefined) return { result: 'unchanged' }
  let version = base.metadata.resourceVersion
  for (let attempt = 0; ; attempt++) {
    try {
      const body = withVersion(change as JsonObject, version, base.metadata.uid)
      const { object } = await server.patch(
        kind,
        ref,
        { type: 'merge', body },
        { dryRun, fieldManager, ...(warn ? { warn } : {}) },
      )
      return { result: 'saved', object }
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409 || attempt >= maxAttempts) throw error
      const theirs = (await read(kind, ref)).object
      if (theirs.metadata.uid !== base.metadata.uid) throw error
      const paths = conflicts(from, edited, editable(theirs as unknown as JsonObject))
      if (paths.length) return { result: 'conflict', theirs, paths }
      version = theirs.metadata.resourceVersion
    }
  }
}

/** The server refuses a patch with another uid, so it never reaches an object that was created again. */
function withVersion(change: JsonObject, resourceVersion: string | undefined, uid: string | undefined): Json {
  const metadata = (change['metadata'] ?? {}) as JsonObject
  return {
    ...change,
    metadata: { ...metadata, ...(resourceVersion ? { resourceVersion } : {}), ...(uid ? { uid } : {}) },
  }
}
