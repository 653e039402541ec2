// Rights are those of the moment at which a request is whole: a caller who holds a body back does not keep what was taken away meanwhile.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { sendLate } from './late-body.ts'
import { keys, must, openStage, ours, type Person, rbac, type Stage, teams } from './people.ts'

const api = 'rbac.authorization.k8s.io'
const mergeType = { 'content-type': 'application/merge-patch+json' }

describe('a request whose body arrives late', () => {
  let stage: Stage
  before(async () => {
    stage = await openStage()
    const rules = [{ verbs: ['*'], apiGroups: ['management.platform.sh'], resources: ['teams'] }]
    await must(stage.admin.ask('POST', `${rbac}/clusterroles`, { metadata: { name: 'leads' }, rules }))
  })
  after(() => stage.close())

  const disable = (name: string) =>
    must(stage.admin.ask('PATCH', `${keys}/${name}`, { spec: { disabled: true } }, mergeType))
  const invite = async (name: string): Promise<Person> => {
    const key = await must(stage.admin.ask('POST', keys, { metadata: { name }, spec: { user: name } }))
    return stage.person(name, key.spec.key)
  }

  test('creates no token and no key after its key was disabled', async () => {
    for (const [name, path] of [
      ['ada', `${ours}/directclusterendpointtokens`],
      ['bob', keys],
    ] as const) {
      const person = await invite(name)
      assert.equal(await sendLate(stage, person, 'POST', path, { spec: {} }, () => disable(name)), 401)
    }
  })

  test('changes nothing after its role was removed', async () => {
    const cy = await invite('cy')
    await must(
      stage.admin.ask('POST', `${rbac}/clusterrolebindings`, {
        metadata: { name: 'cy-leads' },
        roleRef: { apiGroup: api, kind: 'ClusterRole', name: 'leads' },
        subjects: [{ apiGroup: api, kind: 'User', name: 'cy' }],
      }),
    )
    await must(stage.admin.ask('POST', teams, { metadata: { name: 'web' } }))
    const unbind = () => must(stage.admin.ask('DELETE', `${rbac}/clusterrolebindings/cy-leads`))
    assert.equal(await sendLate(stage, cy, 'PATCH', `${teams}/web`, { spec: { displayName: 'mine' } }, unbind), 403)
    assert.equal((await must(stage.admin.ask('GET', `${teams}/web`))).spec.displayName, undefined)
  })

  test('succeeds if nothing changed', async () => {
    const dan = await invite('dan')
    assert.equal(await sendLate(stage, dan, 'POST', keys, { spec: {} }, async () => {}), 201)
  })
})
