// Access keys with secrets that an administrator brings. rows.ts lists them.

import { hash } from 'node:crypto'
import { slotName } from '../../../src/kinds/access-key-slot.ts'
import { judge } from './limits.ts'
import type { Row } from './rows.ts'
import { must, ours, user } from './users.ts'

export const keyRows: { readonly [what: string]: Row } = {
  'a brought key whose slot has 200 others': async system => {
    const { admin } = await user(system, 'owner')
    const url = `${ours}/ownedaccesskeys`
    const fill = async (slot: string, count: number) => {
      const [next, ...others] = secretsIn(slot, count + 1)
      for (const [at, key] of others.entries())
        await must(
          admin('POST', url, { metadata: { name: `${slot}-${at}`.padEnd(200, 'x') }, spec: { user: 'owner', key } }),
        )
      const name = `${slot}-measured`
      return async () => {
        await must(admin('POST', url, { metadata: { name }, spec: { user: 'owner', key: next } }))
        await must(admin('DELETE', `${url}/${name}`))
      }
    }
    return (await judge(await fill('slot-000', 100), await fill('slot-001', 200))).problem
  },
}

/** Secrets whose digests belong to a slot. */
function secretsIn(slot: string, count: number): string[] {
  const found: string[] = []
  for (let at = 0; found.length < count; at++) {
    const secret = `brought-key-of-the-cost-prover-${String(at).padStart(9, '0')}`
    if (slotName(hash('sha256', secret)) === slot) found.push(secret)
  }
  return found
}
