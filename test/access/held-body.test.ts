// Rights are those of the moment at which a request is whole: a caller who holds a body back does not keep what was taken away meanwhile.

import assert from 'node:assert/strict'
import { request } from 'node:https'
import { after, before, describe, test } from 'node:test'
import { keys, must, openStage, ours, type Person, rbac, type Stage, teams } from './people.ts'

const api = 'rbac.authorization.k8s.io'
const mergeType = { 'content-type': 'application/merge-patch+json' }

describe('a body that comes late', () => {
  let stage: Stage
  before(async () => {
    stage = await openStage()
    const rules = [{ verbs: ['*'], apiGroups: ['management.platform.sh'], resources: ['teams'] }]
    await must(stage.admin.ask('POST', `${rbac}/clusterroles`, { metadata: { name: 'leads' }, rules }))
  })
  after(() => stage.close())

  /** Sends the first half, waits for what happens meanwhile, and sends the rest. */
  async function held(who: Person, method: string, path: string, body: object, meanwhile: () => Promise<unknown>) {
    const text = JSON.stringify(body)
    const asked = request(`${stage.server.https}/kubernetes/management${path}`, {
      method,
      ca: stage.server.ca,
      headers: {
        authorization: `Bearer ${who.key}`,
        'content-type': method === 'PATCH' ? mergeType['content-type'] : 'application/json',
        'content-length': Buffer.byteLength(text),
        expect: '100-continue',
      },
    })
    const answered = new Promise<number>((resolve, reject) => {
      asked.on('response', response => {
        response.resume()
        resolve(response.statusCode ?? 0)
      })
      asked.on('error', reject)
    })
    // The server has seen the head when it says to go on.
    await new Promise(resolve => asked.on('continue', resolve))
    asked.write(text.slice(0, 10))
    // Another request of the same key is answered: so this one was judged before.
    await must(who.ask('GET', '/version'))
    await meanwhile()
    asked.end(text.slice(10))
    return answered
  }
  const disable = (name: string) =>
    must(stage.admin.ask('PATCH', `${keys}/${name}`, { spec: { disabled: true } }, mergeType))
  const invite = async (name: string): Promise<Person> => {
    const key = await must(stage.admin.ask('POST', keys, { metadata: { name }, spec: { user: name } }))
    return stage.person(name, key.spec.key)
  }

  test('makes no token and no key after its own key was disabled', async () => {
    for (const [name, path] of [
      ['ada', `${ours}/directclusterendpointtokens`],
      ['bob', keys],
    ] as const) {
      const person = await invite(name)
      assert.equal(await held(person, 'POST', path, { spec: {} }, () => disable(name)), 401)
    }
  })

  test('changes nothing after the role was taken away', async () => {
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
    assert.equal(await held(cy, 'PATCH', `${teams}/web`, { spec: { displayName: 'mine' } }, unbind), 403)
    assert.equal((await must(stage.admin.ask('GET', `${teams}/web`))).spec.displayName, undefined)
  })

  test('is taken where nothing changed', async () => {
    const dan = await invite('dan')
    assert.equal(await held(dan, 'POST', keys, { spec: {} }, async () => {}), 201)
  })
})
