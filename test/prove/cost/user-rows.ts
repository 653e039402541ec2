// Enables a user who holds much. rows.ts lists it.

import { judge } from './limits.ts'
import type { Row } from './rows.ts'
import { bind, many, must, ours, rbac, type User, user, words } from './users.ts'

export const userRows: { readonly [what: string]: Row } = {
  'a user of 200 teams with 200 bindings and 200 secrets is enabled': async system => {
    const manager = await user(system, 'manager')
    // In parts, so that every permission is compared.
    const groups = ['management.platform.sh', 'rbac.authorization.k8s.io', 'example.com']
    for (const apiGroup of groups) await bind(manager, [{ verbs: ['*'], apiGroups: [apiGroup], resources: ['*'] }])
    const enable = async (count: number) => {
      const name = `rich-${count}`
      for (const at of many(count, index => index)) await give(manager, name, at)
      await must(
        manager.admin('POST', `${ours}/users`, { metadata: { name }, spec: { username: name, disabled: true } }),
      )
      return () => must(manager.ask('PATCH', `${ours}/users/${name}?dryRun=All`, { spec: { disabled: false } }))
    }
    return (await judge(await enable(100), await enable(200))).problem
  },
}

/** One more team, binding and secret for the user. */
async function give({ admin }: User, username: string, at: number): Promise<void> {
  const name = `${username}-${at}`
  await must(admin('POST', `${ours}/teams`, { metadata: { name }, spec: { users: [username] } }))
  const access = [{ verbs: words(10), teams: [name], users: [username] }]
  await must(admin('POST', `${ours}/namespaces/default/sharedsecrets`, { metadata: { name }, spec: { access } }))
  const rules = many(10, index => ({ verbs: words(10), apiGroups: ['example.com'], resources: [`things-${index}`] }))
  await must(admin('POST', `${rbac}/clusterroles`, { metadata: { name }, rules }))
  const roleRef = { kind: 'ClusterRole', name }
  const subjects = [{ kind: 'User', name: username }]
  await must(admin('POST', `${rbac}/clusterrolebindings`, { metadata: { name }, roleRef, subjects }))
}
