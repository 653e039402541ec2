// Revokes tokens made with the old secret of a rotated access key when the overlap ends (D22).

import { hash } from 'node:crypto'
import type { Companion } from '../api/admission.ts'
import type { Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { revokedByOverlap } from '../kinds/revocation-triggers.ts'
import { mentions } from '../reconcile/document-words.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'

export type RotationOverlapOptions = {
  readonly resources: Resources
  /** Writes revocations. */
  readonly write: (make: () => readonly Companion[]) => Promise<unknown>
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

const digest = (text: string) => hash('sha256', text, 'hex')

export function startRotationOverlap({ resources, write, now, failed }: RotationOverlapOptions): {
  readonly ready: Promise<void>
  /** Resolves when all keys are processed. */
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const loop = startLoop({
    reconcile: async name => {
      const key = informer.get({ namespace: '', name })
      const until = key && untilOf(key)
      if (!key || until === undefined) return undefined
      const left = until - now()
      if (left > 0) return left
      await write(() => revokedByOverlap(key, { now, digest }))
      return undefined
    },
    failed: (name, error) => failed(`revoking tokens of the old secret of access key "${name}"`, error),
  })
  const informer = startInformer({
    resources,
    kind: OwnedAccessKey,
    counts: mentions('previous'),
    keep: object => object,
    failed: error => failed('watching access keys', error),
    changed: ({ name }, key) => {
      if (key && untilOf(key) !== undefined) loop.add(name)
    },
  })
  return {
    ready: informer.ready,
    idle: loop.idle,
    async stop() {
      informer.stop()
      await loop.stop()
    },
  }
}

function untilOf({ status }: Resource): number | undefined {
  const { previous } = (status ?? {}) as { previous?: { until?: string } }
  return previous?.until === undefined ? undefined : Date.parse(previous.until)
}
