// Aggregated cluster roles hold what the roles they select hold: at once for the authorizer, and soon in the object, as in Kubernetes (D27).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { must, openStage, ours, type Person, rbac, refused, type Stage, secrets, soon, teams } from './people.ts'

const roles = `${rbac}/clusterroles`
const mergeType = { 'content-type': 'application/merge-patch+json' }
const reading = (resource: string) => ({ verbs: ['get'], apiGroups: ['management.platform.sh'], resources: [resource] })

describe('an aggregated cluster role', () => {
  let stage: Stage
  let ada: Person
  const make = (name: string, fields: object, labels = {}) =>
    must(stage.admin.ask('POST', roles, { metadata: { name, labels }, ...fields }))
  const rulesOf = async (name: string) => (await must(stage.admin.ask('GET', `${roles}/${name}`))).rules
  before(async () => {
    stage = await openStage()
    ada = await stage.invite('ada')
    await make('all-readers', { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { reads: 'yes' } }] } })
    await must(
      stage.admin.ask('POST', `${rbac}/clusterrolebindings`, {
        metadata: { name: 'ada' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'all-readers' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ada' }],
      }),
    )
    await must(stage.admin.ask('POST', teams, { metadata: { name: 'web' } }))
  })
  after(() => stage.close())

  test('holds the rules of a selected role at the next request, and shows them soon', async () => {
    await refused(ada.ask('GET', `${teams}/web`), 403)
    await make('team-reader', { rules: [reading('teams')] }, { reads: 'yes' })
    await must(ada.ask('GET', `${teams}/web`))
    await soon('the rules are in the object', async () => (await rulesOf('all-readers'))?.length === 1)
    assert.deepEqual(await rulesOf('all-readers'), [reading('teams')])
  })

  test('loses them at the next request after its selector no longer matches, whatever the object still contains', async () => {
    await must(stage.admin.ask('PATCH', `${roles}/team-reader`, { metadata: { labels: { reads: null } } }, mergeType))
    await refused(ada.ask('GET', `${teams}/web`), 403)
    await soon('the rules are gone from the object', async () => !(await rulesOf('all-readers'))?.length)
    await must(stage.admin.ask('PATCH', `${roles}/all-readers`, { rules: [reading('teams')] }, mergeType))
    await refused(ada.ask('GET', `${teams}/web`), 403)
    await soon('what was written by hand is overwritten', async () => !(await rulesOf('all-readers'))?.length)
  })

  test('includes other aggregated roles, and tolerates cycles', async () => {
    const circle = (label: string) => ({
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [label]: 'yes' } }] },
    })
    await make('one', circle('second'), { first: 'yes' })
    await make('two', circle('first'), { second: 'yes' })
    await make('part', { rules: [reading('sharedsecrets')] }, { first: 'yes' })
    await soon('both hold it', async () => (await rulesOf('one'))?.length === 1 && (await rulesOf('two'))?.length === 1)
  })

  test('with an empty selector has the rules of every role', async () => {
    await make('sum', { aggregationRule: { clusterRoleSelectors: [{}] } })
    const has = async (verb: string) =>
      (await rulesOf('sum'))?.some((rule: { verbs: string[] }) => rule.verbs[0] === verb)
    await soon('the rules of platform-admin are in it', async () => has('*'))
  })

  test('with more rules than an object may have shows earlier ones, and has all of them', async () => {
    const rule = (part: string, at: number) => ({
      ...reading('sharedsecrets'),
      resourceNames: Array.from({ length: 100 }, (_, index) => `${part}-${at}-${index}-`.padEnd(100, 'x')),
    })
    const part = (name: string, labels = {}) =>
      make(name, { rules: Array.from({ length: 40 }, (_, at) => rule(name, at)) }, { large: 'yes', ...labels })
    const sum = (label: string) => ({
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [label]: 'yes' } }] },
    })
    const shown = async (name: string) => (await rulesOf(name))?.length ?? 0
    const secretOf = (name: string) => ada.ask('GET', `${secrets()}/${rule(name, 0).resourceNames[0]}`)
    await make('large', sum('large'), { reads: 'yes' })
    await make('written-after-large', sum('last'))
    await part('large-1')
    await part('large-2')
    await soon('two parts are in the object', async () => (await shown('large')) === 80)
    await refused(secretOf('large-3'), 403)
    await part('large-3', { last: 'yes' })
    await refused(secretOf('large-3'), 404)
    await soon('the controller has finished', async () => (await shown('written-after-large')) === 40)
    assert.equal(await shown('large'), 80)
    await must(stage.admin.ask('DELETE', `${roles}/large-1`))
    await soon('the other parts are in the object', async () =>
      (await rulesOf('large'))?.some((one: object) => isDeepStrictEqual(one, rule('large-3', 0))),
    )
    assert.equal(await shown('large'), 80)
  })

  test('with more than 1,000 rules shows earlier ones, and has all of them', async () => {
    const part = (name: string) =>
      make(
        name,
        {
          rules: Array.from({ length: 600 }, (_, at) => ({
            ...reading('sharedsecrets'),
            resourceNames: [`${name}-${at}`],
          })),
        },
        { numerous: 'yes' },
      )
    const selecting = { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { numerous: 'yes' } }] } }
    await make('numerous', selecting, { reads: 'yes' })
    await part('many-1')
    await soon('one part is in the object', async () => (await rulesOf('numerous'))?.length === 600)
    await part('many-2')
    await refused(ada.ask('GET', `${secrets()}/many-2-599`), 404)
    await must(stage.admin.ask('DELETE', `${roles}/many-1`))
    await soon(
      'the other part is in the object',
      async () => (await rulesOf('numerous'))?.[0].resourceNames[0] === 'many-2-0',
    )
  })

  test('without a selector, or with an invalid one, is rejected with 422', async () => {
    const ask = (clusterRoleSelectors: object[]) =>
      stage.admin.ask('POST', roles, { metadata: { name: 'odd' }, aggregationRule: { clusterRoleSelectors } })
    await refused(ask([]), 422, /at least one clusterRoleSelector required/)
    await refused(ask([{ matchExpressions: [{ key: 'a', operator: 'Near' }] }]), 422, /supported values: "In"/)
    await refused(ask([{ matchExpressions: [{ key: 'a', operator: 'In' }] }]), 422, /must be specified/)
  })

  test('is named in explanations', async () => {
    await make('again', { rules: [reading('teams')] }, { reads: 'yes' })
    const spec = {
      resourceAttributes: { verb: 'get', group: 'management.platform.sh', resource: 'teams', name: 'web' },
    }
    const { status } = await must(ada.ask('POST', `${ours}/accessexplanations`, { spec }))
    assert.equal(status.reason, 'allowed by ClusterRoleBinding ada of ClusterRole all-readers to user ada')
  })
})
