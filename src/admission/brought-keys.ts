// Makes sure that a secret that a caller brings belongs to one access key, also if two replicas write at the same moment (D12).
// All claims of a secret write its slot, so that the store accepts them one after another.

import type { Companion } from '../api/admission.ts'
import type { Caller } from '../api/caller.ts'
import { invalid, invalidSecret } from '../api/errors.ts'
import type { ObjectOf } from '../api/kind.ts'
import type { JsonObject, Resource } from '../api/object.ts'
import { AccessKeySlot, slotName } from '../kinds/access-key-slot.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'

type Key = ObjectOf<typeof OwnedAccessKey>

/** `uid`: of the key that claims a digest. `holders`: of keys that have it. The index may lack one that was written just now. */
export type Claimants = { readonly uid: string; readonly holders: readonly string[] }

export type BroughtKeyDependencies = {
  readonly keyNamed: (name: string) => Resource | undefined
  /** Whether an access key other than `uid` has the digest. A positive result counts as a guess; too many throw 429 (D62). */
  readonly isDigestTaken: (caller: Caller, digest: string, by: Claimants) => boolean
}

/** `next`: with the digest that it claims. Throws if another key has it. */
export function claimDigest(dependencies: BroughtKeyDependencies, caller: Caller, next: Key): Companion {
  const { keyNamed, isDigestTaken } = dependencies
  const { name = '', uid = '' } = next.metadata
  const { digest = '' } = next.status ?? {}
  const slot = slotName(digest)
  const claim = (stored?: Resource): JsonObject => {
    const listed = (stored as ObjectOf<typeof AccessKeySlot> | undefined)?.spec?.keys ?? []
    // A key in a slot was stored in the same commit. So this sees every claim that the slot lists.
    const inSlot = listed
      .flatMap(one => (keyNamed(one) as Key | undefined) ?? [])
      .filter(one => digestsOf(one).some(other => slotName(other) === slot))
    const holders = inSlot.filter(one => digestsOf(one).includes(digest)).map(({ metadata }) => metadata.uid ?? '')
    if (isDigestTaken(caller, digest, { uid, holders }))
      throw invalid(OwnedAccessKey, name, [invalidSecret('spec.key', 'the key is in use already')])
    const keys = new Set([...inSlot.map(({ metadata }) => metadata.name ?? ''), name])
    return { metadata: { name: slot }, spec: { keys: [...keys] } }
  }
  return { kind: AccessKeySlot, object: claim(), merge: claim }
}

/** The secret from before a rotation counts until the next rotation or a new secret. */
const digestsOf = ({ status: { digest, previous } = {} }: Key): string[] =>
  [digest, previous?.digest].filter(one => one !== undefined)
