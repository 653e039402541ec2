// Conditions that the server computes cannot be written through /status. Other types can (D23).

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { must, openStage, ours, type Person, type Stage, secrets, settled, teams } from './people.ts'

const merge = { 'content-type': 'application/merge-patch+json' }
const apply = { 'content-type': 'application/apply-patch+yaml' }
type Condition = { type: string; status: string }
type Shown = { status: { conditions: Condition[]; observedGeneration: number } }

let stage: Stage
let admin: Person
before(async () => {
  stage = await openStage()
  admin = stage.admin
})
after(() => stage.close())

const free = { type: 'Mine', status: 'False', reason: 'Any', message: 'any text' }
const own = ({ status }: Shown) => status.conditions.filter(({ type }) => type !== 'Mine')
const isFree = ({ status }: Shown) => status.conditions.some(one => one.type === 'Mine' && one.status === 'False')

for (const [kind, path] of [
  ['SharedSecret', secrets()],
  ['ProjectSecret', `${ours}/namespaces/p-web/projectsecrets`],
  ['Team', teams],
] as const)
  test(`a write of /status keeps the server's conditions of a ${kind}`, async () => {
    const access = [{ verbs: ['get'], users: ['x'] }]
    const { apiVersion } = await must(admin.ask('POST', path, { metadata: { name: 'own' }, spec: { access } }))
    const before = await settled(admin, `${path}/own`)
    const forged = ['AccessApplied', 'Ready', 'RolesResolved', 'Synced'].map(type => ({
      ...free,
      type,
      lastTransitionTime: '2001-01-01T00:00:00Z',
    }))
    const status = { conditions: [...forged, free], observedGeneration: 77 }
    const at = `${path}/own/status`
    const sent = { apiVersion, kind, metadata: { name: 'own' }, status }
    const writes = {
      replace: () => admin.ask('PUT', at, { ...before, status: { ...before.status, ...status } }),
      patch: () => admin.ask('PATCH', at, { status }, merge),
      apply: () => admin.ask('PATCH', `${at}?fieldManager=me&force=true`, sent, apply),
    }
    for (const [name, write] of Object.entries(writes)) {
      const shown = await must(write())
      assert.deepEqual(own(shown), own(before), name)
      assert.equal(shown.status.observedGeneration, before.status.observedGeneration, name)
      assert.ok(isFree(shown), name)
      assert.deepEqual((await must(admin.ask('GET', `${path}/own`))).status, shown.status, name)
    }
    const emptied = await must(admin.ask('PATCH', at, { status: null }, merge))
    assert.deepEqual(emptied.status.conditions, own(before))
  })
