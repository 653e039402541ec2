// The username of a team names it in impersonation, access reviews and explanations, and never grants more than its name (D23).

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { must, openStage, ours, type Person, rbac, refused, type Stage, secrets, teams } from './people.ts'

const group = (team: string) => `platform:team:${team}`
const merge = { 'content-type': 'application/merge-patch+json' }
const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
const itself = '/apis/authentication.k8s.io/v1/selfsubjectreviews'

let stage: Stage
let admin: Person
before(async () => {
  stage = await openStage()
  admin = stage.admin
  await must(admin.ask('POST', teams, { metadata: { name: 'shop' }, spec: { username: 'store', users: ['mia'] } }))
  await must(admin.ask('POST', teams, { metadata: { name: 'other' } }))
  const access = [{ verbs: ['get'], teams: ['shop'] }]
  await must(admin.ask('POST', secrets(), { metadata: { name: 'shared' }, spec: { access } }))
})
after(() => stage.close())

const asGroup = (team: string) => ({ 'impersonate-user': 'someone', 'impersonate-group': group(team) })
const reads = (person: Person, headers: object) =>
  person.ask('GET', `${secrets()}/shared`, undefined, headers as { [name: string]: string })
const resourceAttributes = {
  verb: 'get',
  group: 'management.platform.sh',
  resource: 'sharedsecrets',
  namespace: 'default',
  name: 'shared',
}
const review = async (spec: object) =>
  (await must(admin.ask('POST', reviews, { spec: { resourceAttributes, ...spec } }))).status.allowed
const explain = async (user: string) =>
  (await must(admin.ask('POST', `${ours}/accessexplanations`, { spec: { resourceAttributes, user } }))).status

/** Somebody who may impersonate exactly these groups. */
async function impersonator(name: string, groups: readonly string[]): Promise<Person> {
  const rules = [
    { verbs: ['impersonate'], apiGroups: [''], resources: ['users'] },
    { verbs: ['impersonate'], apiGroups: [''], resources: ['groups'], resourceNames: groups },
  ]
  await must(admin.ask('POST', `${rbac}/clusterroles`, { metadata: { name }, rules }))
  const subjects = [{ kind: 'User', name }]
  const roleRef = { kind: 'ClusterRole', name }
  await must(admin.ask('POST', `${rbac}/clusterrolebindings`, { metadata: { name }, roleRef, subjects }))
  return stage.invite(name)
}

test('in impersonated groups and users', async () => {
  await must(reads(admin, asGroup('shop')))
  await must(reads(admin, asGroup('store')))
  const { status } = await must(
    admin.ask('POST', itself, {}, { ...asGroup('store'), 'impersonate-user': group('store') }),
  )
  assert.equal(status.userInfo.username, group('shop'))
  assert.deepEqual(status.userInfo.groups, [group('shop'), 'system:authenticated'])
  await refused(reads(admin, asGroup('other')), 403)
  await refused(reads(admin, asGroup('nobody')), 403)
})

test('impersonation needs permission for the name, and a refusal does not reveal it', async () => {
  const byName = await impersonator('by-name', [group('shop')])
  await must(reads(byName, asGroup('store')))
  await refused(reads(byName, asGroup('other')), 403, /impersonate/)
  const byUsername = await impersonator('by-username', [group('store')])
  const { status, text } = await reads(byUsername, asGroup('store'))
  assert.equal(status, 403)
  assert.match(text, /platform:team:store/)
  assert.doesNotMatch(text, /platform:team:shop/)
})

test('the group of a team that does not exist gives nothing', async () => {
  const access = [{ verbs: ['get'], teams: ['later'] }]
  const path = `${secrets()}/early`
  await must(admin.ask('POST', secrets(), { metadata: { name: 'early' }, spec: { access } }))
  await refused(admin.ask('GET', path, undefined, asGroup('later')), 403)
  await must(admin.ask('POST', teams, { metadata: { name: 'later' } }))
  await must(admin.ask('GET', path, undefined, asGroup('later')))
})

test('the group of a team that does not exist gives no role', async () => {
  const roleRef = { kind: 'ClusterRole', name: 'platform-viewer' }
  const subjects = ['Group', 'User'].map(kind => ({ kind, name: group('future') }))
  await must(admin.ask('POST', `${rbac}/clusterrolebindings`, { metadata: { name: 'future' }, roleRef, subjects }))
  const asUser = { 'impersonate-user': group('future') }
  const views = (headers: { [name: string]: string }) => admin.ask('GET', `${teams}/shop`, undefined, headers)
  for (const headers of [asGroup('future'), asUser]) await refused(views(headers), 403)
  await must(admin.ask('POST', teams, { metadata: { name: 'future' } }))
  for (const headers of [asGroup('future'), asUser]) await must(views(headers))
})

test('who impersonates the group of a team that does not exist cannot create the team with what is shared with it', async () => {
  const access = [{ verbs: ['get'], teams: ['planned'] }]
  await must(admin.ask('POST', secrets(), { metadata: { name: 'waiting' }, spec: { access } }))
  const rules = [{ verbs: ['create', 'get'], apiGroups: ['management.platform.sh'], resources: ['teams'] }]
  await must(admin.ask('POST', `${rbac}/clusterroles`, { metadata: { name: 'founder' }, rules }))
  const roleRef = { kind: 'ClusterRole', name: 'founder' }
  const subjects = [{ kind: 'User', name: 'someone' }]
  await must(admin.ask('POST', `${rbac}/clusterrolebindings`, { metadata: { name: 'founder' }, roleRef, subjects }))
  const eve = await impersonator('eve', [group('planned')])
  const found = (by: Person) =>
    by.ask('POST', teams, { metadata: { name: 'planned' }, spec: { users: ['eve'] } }, asGroup('planned'))
  await refused(found(eve), 403, /shared|get/)
})

test('in groups and users of access reviews', async () => {
  for (const team of ['shop', 'store']) assert.equal(await review({ groups: [group(team)] }), true, team)
  for (const team of ['other', 'nobody']) assert.equal(await review({ groups: [group(team)] }), false, team)
  const roleRef = { kind: 'ClusterRole', name: 'platform-viewer' }
  const subjects = [{ kind: 'User', name: group('shop') }]
  await must(admin.ask('POST', `${rbac}/clusterrolebindings`, { metadata: { name: 'team-key' }, roleRef, subjects }))
  const mayList = (team: string) =>
    review({ user: group(team), resourceAttributes: { ...resourceAttributes, verb: 'list', resource: 'teams' } })
  for (const team of ['shop', 'store']) assert.equal(await mayList(team), true, team)
  assert.equal(await mayList('other'), false)
})

test('in explanations, where the user of a team key is the team', async () => {
  for (const team of ['shop', 'store']) {
    const { allowed, steps } = await explain(group(team))
    assert.equal(allowed, true, team)
    assert.ok(steps.includes(`acts as ${group('shop')}`), String(steps))
  }
  assert.equal((await explain(group('other'))).allowed, false)
  assert.equal((await explain(group('nobody'))).allowed, false)
})

test('a username that moves to another team names that team', async () => {
  const byName = await impersonator('by-old-name', [group('shop')])
  await must(reads(byName, asGroup('store')))
  await must(admin.ask('PATCH', `${teams}/shop`, { spec: { username: 'shop' } }, merge))
  await must(admin.ask('PATCH', `${teams}/other`, { spec: { username: 'store' } }, merge))
  await refused(reads(byName, asGroup('store')), 403, /impersonate/)
  await refused(reads(admin, asGroup('store')), 403)
  assert.equal(await review({ groups: [group('store')] }), false)
})

test('a path names a team by its name only', async () => {
  await must(admin.ask('GET', `${teams}/other/permissions`))
  for (const path of ['store', 'store/permissions']) await refused(admin.ask('GET', `${teams}/${path}`), 404)
  await refused(admin.ask('DELETE', `${teams}/store`), 404)
  await must(admin.ask('GET', `${teams}/other`))
})
