// Writes that once stalled the server during the checks of their grants. rows.ts lists them.

import { judge } from './limits.ts'
import type { Row } from './rows.ts'
import { bind, many, must, ours, rbac, refused, user, words } from './users.ts'

export const grantRows: { readonly [what: string]: Row } = {
  'a team shared with 9,600 users, then 10,000 rights more': async system => {
    const owner = await user(system, 'owner')
    const share = async (entries: number) => {
      const name = `shared-${entries}`
      const access = many(entries, at => ({ verbs: ['get'], users: many(40, index => `user-${at}-${index}`) }))
      await must(
        owner.admin('POST', `${ours}/teams`, { metadata: { name }, spec: { owner: { user: 'owner' }, access } }),
      )
      const more = { verbs: words(200), subresources: words(entries / 5 + 1), users: ['somebody'] }
      return () => must(owner.ask('PATCH', `${ours}/teams/${name}?dryRun=All`, { spec: { access: [...access, more] } }))
    }
    return (await judge(await share(120), await share(240))).problem
  },
  'a secret shared with 80 users, 240 verbs each': async system => {
    const owner = await user(system, 'owner')
    await bind(owner, [{ verbs: ['create'], apiGroups: ['management.platform.sh'], resources: ['sharedsecrets'] }])
    const share = async (users: number) => {
      const url = `${ours}/namespaces/default/sharedsecrets`
      const name = `shared-${users}`
      await must(owner.ask('POST', url, { metadata: { name }, spec: { description: 'x'.repeat(100_000) } }))
      const access = [{ verbs: words(240), users: words(users) }]
      return () => must(owner.ask('PATCH', `${url}/${name}?dryRun=All`, { spec: { access } }))
    }
    return (await judge(await share(40), await share(80))).problem
  },
  'a new member of a team with 10,000 rights on a secret': async system => {
    const owner = await user(system, 'owner')
    const create = async (verbs: number) => {
      const name = `crew-${verbs}`
      await must(owner.admin('POST', `${ours}/teams`, { metadata: { name }, spec: { owner: { user: 'owner' } } }))
      const access = [{ verbs: words(verbs), subresources: words(49), teams: [name] }]
      const spec = { owner: { user: 'owner' }, access, description: 'x'.repeat(100_000) }
      await must(owner.admin('POST', `${ours}/namespaces/default/sharedsecrets`, { metadata: { name }, spec }))
      return () => must(owner.ask('PATCH', `${ours}/teams/${name}?dryRun=All`, { spec: { users: ['somebody'] } }))
    }
    return (await judge(await create(100), await create(200))).problem
  },
  'a new member of a team with access to 40 secrets that are shared with 19,500 users': async system => {
    const owner = await user(system, 'owner')
    const create = async (secrets: number) => {
      const name = `shared-with-${secrets}`
      await must(owner.admin('POST', `${ours}/teams`, { metadata: { name }, spec: { owner: { user: 'owner' } } }))
      const access = many(78, at => ({ verbs: ['get'], users: words(250), teams: at ? [] : [name] }))
      for (const at of many(secrets, index => index)) {
        const object = { metadata: { name: `${name}-${at}` }, spec: { owner: { user: 'owner' }, access } }
        await must(owner.admin('POST', `${ours}/namespaces/default/sharedsecrets`, object))
      }
      return () => must(owner.ask('PATCH', `${ours}/teams/${name}?dryRun=All`, { spec: { users: ['somebody'] } }))
    }
    return (await judge(await create(20), await create(40))).problem
  },
  'a patch of a secret that names 240 re-created teams': async system => {
    const owner = await user(system, 'owner')
    const resources = ['teams', 'sharedsecrets']
    await bind(owner, [{ verbs: ['create', 'delete'], apiGroups: ['management.platform.sh'], resources }])
    const share = async (count: number) => {
      const teams = many(count, at => `team-${count}-${at}`)
      const createTeams = async () => {
        for (const name of teams) await must(owner.ask('POST', `${ours}/teams`, { metadata: { name }, spec: {} }))
      }
      await createTeams()
      const url = `${ours}/namespaces/default/sharedsecrets`
      const name = `shared-${count}`
      await must(owner.ask('POST', url, { metadata: { name }, spec: { access: [{ verbs: words(80), teams }] } }))
      for (const team of teams) await must(owner.ask('DELETE', `${ours}/teams/${team}`))
      await createTeams()
      return () => must(owner.ask('PATCH', `${url}/${name}?dryRun=All`, { spec: { displayName: 'x' } }))
    }
    return (await judge(await share(120), await share(240))).problem
  },
  'a role of 80 rules with 10,000 permissions each that its author does not have': async system => {
    const author = await user(system, 'author')
    await bind(author, roleAuthor)
    const create = (count: number) => {
      const rules = many(count, at => ({ verbs: words(100), apiGroups: [`group-${at}`], resources: words(100) }))
      return () => refused(author.ask('POST', newRole, { metadata: { name: 'large' }, rules }))
    }
    return (await judge(create(40), create(80))).problem
  },
  'a role of 96,000 permissions that its author has in parts': async system => {
    const author = await user(system, 'author')
    await bind(author, roleAuthor)
    // Rules for the same resources that do not cover them.
    const near = many(480, at => ({ verbs: ['other'], apiGroups: [`group-${at % 48}`], resources: words(50) }))
    await bind(author, near)
    for (const at of [0, 1]) {
      const resources = many(25, index => `word-${2 * index + at}`)
      await bind(
        author,
        many(48, group => ({ verbs: words(40), apiGroups: [`group-${group}`], resources })),
      )
    }
    const create = (count: number) => {
      const rules = many(count, at => ({ verbs: words(40), apiGroups: [`group-${at}`], resources: words(50) }))
      return () => must(author.ask('POST', newRole, { metadata: { name: 'large' }, rules }))
    }
    return (await judge(create(24), create(48))).problem
  },
  'a role of 1,000 rules by an author who has 1,000': async system => {
    const author = await user(system, 'author')
    await bind(author, roleAuthor)
    const rules = many(1000, at => ({ verbs: ['get', 'list'], apiGroups: [`group-${at}`], resources: ['things'] }))
    await bind(author, rules)
    const create = (count: number) => () =>
      must(author.ask('POST', newRole, { metadata: { name: 'large' }, rules: rules.slice(-count) }))
    return (await judge(create(500), create(1000))).problem
  },
  'the permissions of a team with 240 groups, among 4,000 keys': async system => {
    const reader = await user(system, 'reader')
    for (const at of many(4000, index => index))
      await must(reader.admin('POST', `${ours}/ownedaccesskeys`, { spec: { user: `user-${at}`, groups: ['others'] } }))
    const create = async (count: number) => {
      const name = `groups-${count}`
      await must(
        reader.admin('POST', `${ours}/teams`, {
          metadata: { name },
          spec: { users: ['reader'], groups: words(count) },
        }),
      )
      return () => must(reader.ask('GET', `${ours}/teams/${name}/permissions`))
    }
    return (await judge(await create(120), await create(240))).problem
  },
}

const newRole = `${rbac}/namespaces/default/roles?dryRun=All`
const roleAuthor = [{ verbs: ['create'], apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'] }]
