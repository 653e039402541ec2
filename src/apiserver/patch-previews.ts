// Previews of patches: a quota for each user, and the threads that run them (D70).

import type { Caller } from '../api/caller.ts'
import { forbidden, tooManyRequests, unavailable } from '../api/errors.ts'
import type { JsonObject } from '../api/object.ts'
import { PatchPreview } from '../kinds/patch-preview.ts'
import { openInflightLimits } from '../serving/inflight-limits.ts'
import type { PreviewRequest } from '../vcluster/patch/preview-report.ts'
import type { Previews } from '../vcluster/patch/preview-threads.ts'

export type PatchPreviews = {
  readonly run: (caller: Caller, spec: JsonObject) => Promise<JsonObject>
  readonly close: () => Promise<void>
}

/** For a server without the sandbox. */
export const noPreviews: PatchPreviews['run'] = async () => {
  throw unavailable('this server does not preview patches')
}

/** Previews that run or wait: of all users together, and of one user. There are two threads, so one user cannot hold both. */
const [maxPreviews, maxOfUser] = [16, 1]

/** `perMinute`: previews of one user; 0: none. */
export function openPatchPreviews(perMinute: number, now: () => number): PatchPreviews {
  const limits = openInflightLimits({
    max: { read: 0, write: maxPreviews, watch: 0 },
    share: maxOfUser / maxPreviews,
    rate: perMinute / 60,
    burst: perMinute,
    now,
  })
  let threads: Promise<Previews> | undefined
  // Loaded with the first preview, because it has many modules.
  const opened = async () => (await import('../vcluster/patch/preview-threads.ts')).openPreviews()
  return {
    async run(caller, spec) {
      if (perMinute === 0) throw forbidden(PatchPreview, '', 'previews are turned off by the setting limits.previews')
      const leave = limits.enter(caller.impersonator ?? caller.username, 'write')
      if (!leave) throw tooManyRequests()
      try {
        threads ??= opened()
        return await (await threads).run(spec as unknown as PreviewRequest)
      } finally {
        leave()
      }
    },
    close: async () => (await threads)?.close(),
  }
}
