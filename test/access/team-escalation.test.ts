// Keys and members of a team have all of its permissions: who can become one, and the effects of deleting the team (D14, D18, D27).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { keys, must, openStage, ours, type Person, rbac, refused, type Stage, secrets, teams } from './people.ts'

const api = 'rbac.authorization.k8s.io'
const mergeType = { 'content-type': 'application/merge-patch+json' }

describe('the permissions of a team:', () => {
  let stage: Stage
  let ada: Person
  const bind = (name: string, role: string, kind: 'User' | 'Group', subject: string) =>
    must(
      stage.admin.ask('POST', `${rbac}/clusterrolebindings`, {
        metadata: { name },
        roleRef: { apiGroup: api, kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup: api, kind, name: subject }],
      }),
    )
  before(async () => {
    stage = await openStage()
    const { admin } = stage
    ada = await stage.invite('ada')
    const verbs = ['create', 'get', 'update', 'patch']
    await must(
      admin.ask('POST', `${rbac}/clusterroles`, {
        metadata: { name: 'lead' },
        rules: [{ verbs, apiGroups: ['management.platform.sh'], resources: ['teams'] }],
      }),
    )
    await bind('lead', 'lead', 'User', 'ada')
    for (const name of ['chiefs', 'keepers', 'plain']) await must(admin.ask('POST', teams, { metadata: { name } }))
    await bind('chiefs', 'platform-admin', 'Group', 'platform:team:chiefs')
    await must(
      admin.ask('POST', secrets(), {
        metadata: { name: 'vault' },
        spec: { data: { a: 'aGk=' }, owner: { team: 'keepers' } },
      }),
    )
    await must(
      admin.ask('POST', secrets(), {
        metadata: { name: 'loaned' },
        spec: { data: { a: 'aGk=' }, access: [{ verbs: ['get'], teams: ['lost'] }] },
      }),
    )
  })
  after(() => stage.close())

  test('creating a key of a team requires the permissions bound to the team', async () => {
    await refused(ada.ask('POST', keys, { spec: { team: 'chiefs' } }), 403, /not currently held/)
    const { metadata } = await must(stage.admin.ask('POST', keys, { spec: { team: 'chiefs' } }))
    await refused(ada.ask('POST', `${keys}/${metadata.name}/rotate`, {}), 403)
    await refused(ada.ask('PATCH', `${keys}/${metadata.name}`, { spec: { key: 'k'.repeat(40) } }, mergeType), 403)
    await must(ada.ask('DELETE', `${keys}/${metadata.name}`))
    await must(ada.ask('POST', keys, { spec: { team: 'plain' } }))
  })

  test('creating a key of a team, or joining it, requires the permissions of the team on its objects', async () => {
    const whose = /team "keepers" has permissions that user "ada" does not have: \* sharedsecrets$/
    await refused(ada.ask('POST', keys, { spec: { team: 'keepers' } }), 403, whose)
    await refused(ada.ask('PATCH', `${teams}/keepers`, { spec: { users: ['ada'] } }, mergeType), 403, whose)
    await must(ada.ask('PATCH', `${teams}/plain`, { spec: { users: ['ada'] } }, mergeType))
  })

  test('the objects of a team are checked even if its roles use up the limit of comparisons', async () => {
    const { admin } = stage
    const words = (count: number) => Array.from({ length: count }, (_, at) => `word-${at}`)
    const rule = { verbs: words(200), apiGroups: ['example.com'], resources: words(250) }
    const parts = rule.resources.map(resource => ({ ...rule, verbs: ['*'], resources: [resource] }))
    await must(admin.ask('POST', `${rbac}/clusterroles`, { metadata: { name: 'parts' }, rules: parts }))
    await bind('parts', 'parts', 'User', 'ada')
    // Exactly 100,000 permissions, which Ada has in parts.
    await must(admin.ask('POST', `${rbac}/clusterroles`, { metadata: { name: 'large' }, rules: [rule, rule] }))
    for (const name of ['large', 'large-keepers']) await must(admin.ask('POST', teams, { metadata: { name } }))
    for (const name of ['large', 'large-keepers']) await bind(name, 'large', 'Group', `platform:team:${name}`)
    await must(
      admin.ask('POST', secrets(), { metadata: { name: 'large' }, spec: { owner: { team: 'large-keepers' } } }),
    )
    const whose = /team "large-keepers" has permissions that user "ada" does not have: \* sharedsecrets$/
    await refused(ada.ask('PATCH', `${teams}/large-keepers`, { spec: { users: ['ada'] } }, mergeType), 403, whose)
    await must(ada.ask('PATCH', `${teams}/large`, { spec: { users: ['ada'] } }, mergeType))
  })

  test('creating a team whose name objects still refer to requires the permissions that it would get', async () => {
    await refused(ada.ask('POST', teams, { metadata: { name: 'lost' } }), 403, /does not have: get sharedsecrets$/)
    await must(stage.admin.ask('POST', teams, { metadata: { name: 'lost' } }))
  })

  test('a key of a deleted or terminating team does not authenticate', async () => {
    await must(stage.admin.ask('POST', teams, { metadata: { name: 'brief', finalizers: ['example.com/hold'] } }))
    const key = await must(stage.admin.ask('POST', keys, { spec: { team: 'brief' } }))
    const brief = stage.person('brief', key.spec.key)
    assert.equal((await brief.ask('GET', '/api')).status, 200)
    await must(stage.admin.ask('DELETE', `${teams}/brief`))
    await refused(brief.ask('GET', '/api'), 401, /the team of the access key does not exist/)
    await must(stage.admin.ask('PATCH', `${teams}/brief`, { metadata: { finalizers: [] } }, mergeType))
    await refused(brief.ask('GET', '/api'), 401, /the team of the access key does not exist/)
  })

  test('who-can includes the cluster roles of teams, and the keys that only their owners may access', async () => {
    await must(stage.admin.ask('PATCH', `${teams}/plain`, { spec: { clusterRoles: [{ name: 'lead' }] } }, mergeType))
    const who = async (verb: string, resource: string, name: string) =>
      (
        await must(
          stage.admin.ask('POST', `${ours}/accessexplanations`, {
            spec: { whoCan: true, resourceAttributes: { verb, group: 'management.platform.sh', resource, name } },
          }),
        )
      ).status.who
    assert.ok((await who('update', 'teams', 'any')).includes('group platform:team:plain by Team plain'))
    await bind('looker', 'platform-viewer', 'User', 'vic')
    await must(
      stage.admin.ask('POST', `${rbac}/clusterroles`, {
        metadata: { name: 'key-reader' },
        rules: [{ verbs: ['get'], apiGroups: ['management.platform.sh'], resources: ['ownedaccesskeys'] }],
      }),
    )
    await bind('key-reader', 'key-reader', 'User', 'vic')
    const { metadata } = await must(ada.ask('POST', keys, {}))
    assert.deepEqual(await who('get', 'ownedaccesskeys', metadata.name), [
      'group platform:team:chiefs by ClusterRoleBinding chiefs',
      'user ada by the key is the caller’s own',
      'user admin by ClusterRoleBinding platform-admin',
    ])
  })

  test('a key cannot extend its own lifetime, or change itself if it is limited', async () => {
    const spec = { ttl: 3600 }
    const short = await must(ada.ask('POST', keys, { metadata: { name: 'short' }, spec }))
    const itself = stage.person('ada', short.spec.key)
    const patch = (fields: object) => itself.ask('PATCH', `${keys}/short`, { spec: fields }, mergeType)
    await refused(patch({ ttlAfterLastActivity: true }), 403, /its own ttlAfterLastActivity/)
    await refused(patch({ key: 'k'.repeat(40) }), 403, /cannot rotate itself/)
    await must(patch({ displayName: 'Short' }))
  })
})
