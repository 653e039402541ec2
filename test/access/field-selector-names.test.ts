// A name in a field selector is a name to authorization: for what it selects, and for nothing else.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { must, openStage, ours, type Person, refused, type Stage, secrets, teams } from './people.ts'

const named = (name: string) => `?fieldSelector=metadata.name%3D${name}`
const namesOf = (list: { items: { metadata: { namespace?: string } }[] }) =>
  list.items.map(item => item.metadata.namespace)

describe('a selected name', () => {
  let stage: Stage
  let eve: Person
  before(async () => {
    stage = await openStage()
    eve = await stage.invite('eve')
    const { admin } = stage
    await must(admin.ask('POST', teams, { metadata: { name: 'hers' }, spec: { owner: { user: 'eve' } } }))
    for (const namespace of ['default', 'vault'])
      await must(
        admin.ask('POST', secrets(namespace), {
          metadata: { name: 'db' },
          spec: { data: { a: 'aGk=' }, owner: { user: namespace === 'default' ? 'eve' : 'admin' } },
        }),
      )
  })
  after(() => stage.close())

  test('does not make the owner of an object a creator of others (D26)', async () => {
    await refused(eve.ask('POST', `${teams}${named('hers')}`, { metadata: { name: 'stolen' } }), 403)
    await refused(eve.ask('POST', `${secrets()}${named('db')}`, { metadata: { name: 'stolen' }, spec: {} }), 403)
    const review = await must(
      eve.ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        spec: {
          resourceAttributes: { verb: 'create', group: 'management.platform.sh', resource: 'teams', name: 'hers' },
        },
      }),
    )
    assert.equal(review.status.allowed, false)
  })

  test('does not show objects of that name in other namespaces to the owner of one (D27)', async () => {
    const everywhere = `${ours}/sharedsecrets${named('db')}`
    assert.deepEqual(namesOf(await must(eve.ask('GET', everywhere))), ['default'])
    for await (const { type, object } of eve.watch(`${everywhere}&resourceVersion=0&timeoutSeconds=1`))
      if (type !== 'BOOKMARK') assert.equal(object.metadata.namespace, 'default')
  })

  test('does not show its owner an earlier object of that name, nor this one before it was theirs (D27)', async () => {
    const secret = (data: string, user: string) => ({
      metadata: { name: 'reborn' },
      spec: { data: { a: data }, owner: { user } },
    })
    const first = await must(stage.admin.ask('POST', secrets(), secret('c2VjcmV0', 'admin')))
    await must(stage.admin.ask('DELETE', `${secrets()}/reborn`))
    await must(stage.admin.ask('POST', secrets(), secret('b3BlbgAA', 'eve')))
    const { resourceVersion } = first.metadata
    const at = `${secrets()}${named('reborn')}&resourceVersion=${resourceVersion}`
    const before = await must(eve.ask('GET', `${at}&resourceVersionMatch=Exact`))
    assert.deepEqual(before.items, [])
    const seen: string[] = []
    for await (const { type, object } of eve.watch(`${at}&timeoutSeconds=1`))
      if (type !== 'BOOKMARK') seen.push(`${type} ${object.spec.data.a}`)
    assert.deepEqual(seen, ['ADDED b3BlbgAA'])
  })

  test('does not let a key whose scope names one object create another (D25)', async () => {
    const scope = {
      rules: [{ resources: [{ group: 'management.platform.sh', resources: ['teams'], resourceNames: ['hers'] }] }],
    }
    const scoped = await stage.invite('admin', { scope })
    await must(scoped.ask('GET', `${teams}/hers`))
    await refused(scoped.ask('POST', `${teams}${named('hers')}`, { metadata: { name: 'stolen' } }), 403)
  })
})
