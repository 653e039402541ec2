// PatchPreview: evaluates patches within the quota of the caller (D70).

import type { Admission } from '../api/admission.ts'
import type { Caller } from '../api/caller.ts'
import type { ObjectOf } from '../api/kind.ts'
import type { JsonObject } from '../api/object.ts'
import type { PatchPreview } from '../kinds/patch-preview.ts'

type Dependencies = {
  /** The status of a preview. Throws 429 if the caller has used up the quota. */
  readonly previewPatches: (caller: Caller, spec: JsonObject) => Promise<JsonObject>
}

export const patchPreviewAdmission = ({ previewPatches }: Dependencies): Admission<ObjectOf<typeof PatchPreview>> => ({
  answer: async (next, { caller }) => {
    const status = await previewPatches(caller, (next.spec ?? {}) as JsonObject)
    return { ...next, status: status as NonNullable<typeof next.status> }
  },
})
