// Users whose roles list very many names: the server answers by whole namespaces and limited lists, and shows exactly what the roles allow.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { must, openStage, ours, type Person, rbac, refused, type Stage, secrets } from './people.ts'

const api = { apiGroups: ['management.platform.sh'], resources: ['sharedsecrets'] }
const reviews = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews'
const many = <T>(count: number, make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at))
/** One rule more than a list looks up by name. */
const rules = (prefix: string) => [
  { verbs: ['get'], ...api, resourceNames: many(1000, at => `${prefix}-${at}`) },
  { verbs: ['get'], ...api, resourceNames: [`${prefix}-0`, `${prefix}-1000`] },
]

describe('a user with more than 1,000 names in roles', () => {
  let stage: Stage
  before(async () => {
    stage = await openStage()
    for (const namespace of ['one', 'two'])
      for (const name of ['a-0', 'a-1000', 'a-1001', 'b-5', 'other'])
        await must(stage.admin.ask('POST', secrets(namespace), { metadata: { name }, spec: { data: { a: 'YQ==' } } }))
  })
  after(() => stage.close())

  /** In a namespace, or everywhere if it is empty. */
  async function bind({ name: user }: Person, namespace: string, granted: readonly object[]): Promise<void> {
    const [path, kind] = namespace ? [`${rbac}/namespaces/${namespace}`, 'Role'] : [rbac, 'ClusterRole']
    const [roles, bindings] = [`${kind.toLowerCase()}s`, `${kind.toLowerCase()}bindings`]
    const { metadata } = await must(
      stage.admin.ask('POST', `${path}/${roles}`, { metadata: { generateName: `${user}-` }, rules: granted }),
    )
    const roleRef = { kind, name: metadata.name }
    for (const turn of [1, 2])
      await must(
        stage.admin.ask('POST', `${path}/${bindings}`, {
          metadata: { name: `${metadata.name}-${turn}` },
          roleRef,
          subjects: [{ kind: 'User', name: user }],
        }),
      )
  }

  type Listed = { readonly metadata: { readonly namespace: string; readonly name: string } }
  const listed = async (person: Person, path = `${ours}/sharedsecrets`) => {
    const { items } = await must(person.ask('GET', path))
    return items.map(({ metadata: { namespace, name } }: Listed) => `${namespace}/${name}`)
  }

  test('sees exactly these objects of the namespace', async () => {
    const ada = await stage.invite('ada')
    await bind(ada, 'one', rules('a'))
    await bind(ada, 'two', [{ verbs: ['get'], ...api, resourceNames: ['b-5', 'missing'] }])
    assert.deepEqual(await listed(ada), ['one/a-0', 'one/a-1000', 'two/b-5'])
    assert.deepEqual(await listed(ada, secrets('two')), ['two/b-5'])
    await must(ada.ask('GET', `${secrets('one')}/a-1000`))
    await refused(ada.ask('GET', `${secrets('one')}/a-1001`), 403)
    await refused(ada.ask('GET', `${secrets('two')}/a-0`), 403)
  })

  test('sees exactly these objects of all namespaces', async () => {
    const bob = await stage.invite('bob')
    await bind(bob, '', rules('a'))
    assert.deepEqual(await listed(bob), ['one/a-0', 'one/a-1000', 'two/a-0', 'two/a-1000'])
    await refused(bob.ask('GET', `${secrets('one')}/other`), 403)
  })

  test('loses one of several large roles, and keeps the others', async () => {
    const cyd = await stage.invite('cyd')
    await bind(cyd, 'one', rules('a'))
    await bind(cyd, 'one', rules('b'))
    assert.deepEqual(await listed(cyd), ['one/a-0', 'one/a-1000', 'one/b-5'])
    const roles = `${rbac}/namespaces/one/roles`
    const { items } = await must(stage.admin.ask('GET', roles))
    const [first] = items.filter(
      (role: { rules: readonly { resourceNames?: readonly string[] }[] } & Listed) =>
        role.metadata.name.startsWith('cyd-') && role.rules[0]?.resourceNames?.[0] === 'a-0',
    )
    await must(stage.admin.ask('DELETE', `${roles}/${first.metadata.name}`))
    assert.deepEqual(await listed(cyd), ['one/b-5'])
    await refused(cyd.ask('GET', `${secrets('one')}/a-0`), 403)
  })

  test('gets each rule once in a review, and a limited number of them', async () => {
    const dan = await stage.invite('dan')
    await bind(dan, 'one', rules('a'))
    const review = async () => (await must(dan.ask('POST', reviews, { spec: { namespace: 'one' } }))).status
    const few = await review()
    assert.equal(few.incomplete, false)
    type Rule = { readonly resourceNames?: readonly string[] }
    assert.equal(few.resourceRules.filter((rule: Rule) => rule.resourceNames?.includes('a-0')).length, 2)
    await bind(
      dan,
      'one',
      many(25, at => ({ verbs: ['get'], ...api, resourceNames: many(1000, index => `c-${at}-${index}`) })),
    )
    const { incomplete, evaluationError, resourceRules } = await review()
    assert.equal(incomplete, true)
    assert.match(evaluationError, /leaves out some rules/)
    const names = resourceRules.flatMap((rule: Rule) => rule.resourceNames ?? [])
    assert.ok(names.length > 10_000 && names.length <= 20_000, `lists ${names.length} names`)
  })
})
