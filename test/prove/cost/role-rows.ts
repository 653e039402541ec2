// Requests of users with very large roles, which once stalled the server. rows.ts lists them.

import { judge } from './limits.ts'
import type { Row } from './rows.ts'
import type { System } from './system.ts'
import { many, must, ours, rbac, type User, user } from './users.ts'

export const roleRows: { readonly [what: string]: Row } = {
  'a filtered list by a user with 20 bindings of a role of 45,000 names': system =>
    compare(system, { roles: 1, bindings: 20 }, list),
  'a filtered list by a user with 10 roles of 45,000 names each': system =>
    compare(system, { roles: 10, bindings: 10 }, list),
  'a filtered list by the administrator of a namespace with 10 roles of 45,000 names each': system =>
    compare(system, { roles: 10, bindings: 10, rules: [{ verbs: ['get'], ...secrets }] }, list),
  'a new empty role of a user with 10 roles of 45,000 names each': system => {
    const rules = [
      { verbs: ['create'], apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'] },
      { verbs: ['get'], ...secrets },
    ]
    return compare(system, { roles: 10, bindings: 10, rules }, async ({ name, ask }) => {
      const metadata = { generateName: 'empty-' }
      await must(ask('POST', `${rbac}/namespaces/${name}/roles`, { metadata, rules: [] }))
      await must(list({ name, ask }))
    })
  },
  'a new empty role while an aggregated role has 450,000 names': async system => {
    const { name, ask, admin } = await user(system, 'holder')
    for (const at of many(10, index => index)) {
      const metadata = { name: `part-${at}`, labels: { part: 'yes' } }
      await must(admin('POST', `${rbac}/clusterroles`, { metadata, rules: many(45, rule => named(at, rule)) }))
    }
    const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { part: 'yes' } }] }
    await must(admin('POST', `${rbac}/clusterroles`, { metadata: { name: 'whole' }, aggregationRule }))
    const roleRef = { kind: 'ClusterRole', name: 'whole' }
    const subjects = [{ kind: 'User', name }]
    await must(admin('POST', `${rbac}/clusterrolebindings`, { metadata: { name: 'whole' }, roleRef, subjects }))
    const create = async () => {
      await must(admin('POST', `${rbac}/namespaces/default/roles`, { metadata: { generateName: 'empty-' }, rules: [] }))
      await list({ name, ask })
    }
    return (await judge(undefined, create)).problem
  },
  'the rules of a user with 20 bindings of a role of 45,000 names': system =>
    compare(system, { roles: 1, bindings: 20 }, listRules),
  'the rules of a user with 30 roles of 45,000 names each': system =>
    compare(system, { roles: 30, bindings: 30 }, listRules),
  'an explanation for a user with 20 bindings of a role of 45,000 names': system =>
    compare(system, { roles: 1, bindings: 20 }, ({ name, ask }) => {
      const resourceAttributes = {
        verb: 'update',
        group: 'management.platform.sh',
        resource: 'sharedsecrets',
        namespace: name,
      }
      return must(ask('POST', `${ours}/accessexplanations`, { spec: { resourceAttributes } }))
    }),
}

const secrets = { apiGroups: ['management.platform.sh'], resources: ['sharedsecrets'] }

/** A rule with 1,000 distinct names. */
const named = (role: number, rule: number) => ({
  verbs: ['get'],
  ...secrets,
  resourceNames: many(1000, index => `name-${role}-${rule}-${index}`),
})

type Asker = Pick<User, 'name' | 'ask'>
const list = ({ ask }: Asker) => must(ask('GET', `${ours}/sharedsecrets?limit=1`))
const listRules = ({ name, ask }: Asker) => {
  const reviews = '/kubernetes/management/apis/authorization.k8s.io/v1/selfsubjectrulesreviews'
  return must(ask('POST', reviews, { spec: { namespace: name } }))
}

/** In a namespace with the name of the user. `rules`: of one more role. */
type Held = { readonly roles: number; readonly bindings: number; readonly rules?: readonly object[] }

async function compare(system: System, held: Held, work: (user: User) => Promise<unknown>) {
  const half = await holder(system, 'half', { ...held, roles: Math.ceil(held.roles / 2), bindings: held.bindings / 2 })
  const whole = await holder(system, 'whole', held)
  return (
    await judge(
      () => work(half),
      () => work(whole),
    )
  ).problem
}

async function holder(system: System, name: string, { roles, bindings, rules = [] }: Held): Promise<User> {
  const created = await user(system, name)
  const { admin } = created
  const space = `${rbac}/namespaces/${name}`
  const bind = (role: string, binding: string) => {
    const roleRef = { kind: 'Role', name: role }
    const subjects = [{ kind: 'User', name }]
    return must(admin('POST', `${space}/rolebindings`, { metadata: { name: binding }, roleRef, subjects }))
  }
  for (const role of many(roles, at => at)) {
    const metadata = { name: `names-${role}` }
    await must(admin('POST', `${space}/roles`, { metadata, rules: many(45, at => named(role, at)) }))
  }
  for (const at of many(bindings, index => index)) await bind(`names-${at % roles}`, `names-${at}`)
  await must(admin('POST', `${space}/roles`, { metadata: { name: 'other' }, rules }))
  await bind('other', 'other')
  return created
}
