// Names that are so long that V8 hashes them by their length alone. Indexes with many of them once stalled the server. rows.ts lists them.

import { judge } from './limits.ts'
import type { Row } from './rows.ts'
import type { System } from './system.ts'
import { many, must, ours, rbac, type User, user } from './users.ts'

export const longNameRows: { readonly [what: string]: Row } = {
  'a key among 2,000 owners with uids of 20 KB': system =>
    stored(system, 80, ({ ask }, at) => {
      const owner = { apiVersion: 'v1', kind: 'Namespace', name: 'default' }
      const ownerReferences = many(25, index => ({ ...owner, uid: long(`${at}-${index}`) }))
      return ask('POST', `${ours}/ownedaccesskeys`, { metadata: { generateName: 'long-', ownerReferences } })
    }),
  'a binding among 2,500 subjects with names of 20 KB': system =>
    stored(system, 50, ({ admin }, at) => {
      const roleRef = { kind: 'ClusterRole', name: 'platform-viewer' }
      const subjects = many(50, index => ({ kind: 'User', name: long(`${at}-${index}`) }))
      return admin('POST', `${rbac}/clusterrolebindings`, { metadata: { generateName: 'long-' }, roleRef, subjects })
    }),
}

/** Writes many objects, then measures one more. Undefined if the server rejects the first for the length of a text. */
async function stored(system: System, count: number, create: (user: User, at: number) => ReturnType<User['ask']>) {
  const holder = await user(system, 'holder')
  const { code, text } = await create(holder, 0)
  if (code === 422 && text.includes('Too long')) return undefined
  for (const at of many(count - 1, index => index + 1)) await must(create(holder, at))
  let turn = count
  return (await judge(undefined, () => must(create(holder, turn++)))).problem
}

const long = (end: string) => `${'x'.repeat(20_000)}${end.padStart(10, '0')}`
