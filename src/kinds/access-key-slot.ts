// AccessKeySlot: an internal kind. It makes sure that a secret that a caller brings belongs to one access key, also at concurrent writes of replicas (D12).

import { defineKind, type KindOf } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { list, type Static, struct, text } from '../api/schema.ts'

const spec = struct('The reservations.', {
  keys: list(
    text(''),
    'Names of the OwnedAccessKeys that brought a secret of this slot. Some may have another one by now.',
  ),
})

/** Many secrets share a slot. So there are at most 4096, none needs to be deleted, and a name reveals 12 bits of a digest. */
export const AccessKeySlot: KindOf<Resource<Static<typeof spec>, unknown>> = defineKind({
  kind: 'AccessKeySlot',
  plural: 'accesskeyslots',
  singular: 'accesskeyslot',
  namespaced: false,
  description: 'AccessKeySlot lists access keys with secrets that callers brought, so that no two have the same.',
  spec,
  served: false,
  sample: { apiVersion: 'management.platform.sh/v1', kind: 'AccessKeySlot', metadata: { name: 'slot-0a1' } },
})

export const slotName = (digest: string) => `slot-${digest.slice(0, 3)}`
