// A key too narrow to ask who it is hears about itself in the refusal, and nobody else hears of it anywhere (D25).

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Answer } from '../support/request.ts'
import { keys, must, openStage, ours, type Person, type Stage, secrets, teams } from './people.ts'

const review = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const explanations = `${ours}/accessexplanations`

let stage: Stage
before(async () => {
  stage = await openStage()
})
after(() => stage.close())

const withScope = async (name: string, scope: object, more: object = {}): Promise<Person> => {
  const made = await must(
    stage.admin.ask('POST', keys, { metadata: { name }, spec: { user: 'admin', scope, ...more } }),
  )
  return stage.person('admin', made.spec.key)
}

const details = ({ status, body }: Answer) => {
  assert.equal(status, 403)
  return (body as { details: { causes?: { reason: string; message: string }[] } }).details
}

test('a denied self review names the key, its owner, its scope and the remaining seconds, but no groups', async () => {
  const scope = { projects: [{ project: 'shop' }] }
  const narrow = await withScope('narrow', scope, { ttl: 3600 })
  const { causes = [], ...about } = details(await narrow.ask('POST', review, {}))
  assert.deepEqual(about, { group: 'authentication.k8s.io', kind: 'selfsubjectreviews' })
  const [denied, name, owner, told, ends, ...more] = causes
  assert.equal(denied?.reason, 'KeyScopeDenied')
  assert.deepEqual(
    [name, owner, more],
    [{ reason: 'KeyName', message: 'narrow' }, { reason: 'KeyOwner', message: 'admin' }, []],
  )
  assert.deepEqual([told?.reason, JSON.parse(told?.message ?? '')], ['KeyScope', scope])
  assert.equal(ends?.reason, 'KeyEndsIn')
  assert.ok(Number(ends?.message) > 3000 && Number(ends?.message) <= 3600, ends?.message)
})

test('a denied self review of a key without expiry has no remaining seconds', async () => {
  const endless = await withScope('endless', { virtualClusters: [{ project: 'shop', virtualCluster: 'dev' }] })
  const { causes = [] } = details(await endless.ask('POST', review, {}))
  assert.deepEqual(
    causes.map(one => one.reason),
    ['KeyScopeDenied', 'KeyName', 'KeyOwner', 'KeyScope'],
  )
})

test('every other denial by scope names the key and its owner, but not the scope', async () => {
  const narrow = await withScope('short', { projects: [{ project: 'shop' }] })
  for (const [method, path] of [
    ['GET', `${teams}/web`],
    ['GET', `${secrets()}/db`],
    ['POST', secrets()],
    ['GET', review],
    ['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'],
    ['POST', '/apis/authentication.k8s.io/v1/tokenreviews'],
    ['POST', explanations],
    ['GET', '/metrics'],
  ] as const) {
    const answer = await narrow.ask(method, path, method === 'POST' ? {} : undefined)
    assert.ok([403, 405].includes(answer.status), `${method} ${path}: ${answer.text}`)
    assert.doesNotMatch(answer.text, /"KeyScope"|"shop/, `${method} ${path}`)
    if (answer.status === 403)
      assert.deepEqual(
        details(answer).causes?.map(one => one.reason),
        ['KeyScopeDenied', 'KeyName', 'KeyOwner'],
        `${method} ${path}`,
      )
  }
  const ada = await stage.invite('ada')
  assert.equal(details(await ada.ask('GET', `${secrets()}/db`)).causes, undefined)
})

test('impersonated users, reviews about others and explanations contain nothing about the key', async () => {
  const scope = { rules: [{ verbs: ['impersonate'], resources: [{ group: '', resources: ['users'] }] }] }
  const proxy = await withScope('proxy', scope, { ttl: 3600 })
  const acting = await proxy.ask('POST', review, {}, { 'impersonate-user': 'ada' })
  assert.match(acting.text, /User \\"ada\\" cannot create resource \\"selfsubjectreviews\\"/)
  const reasons = (answer: Answer) => details(answer).causes?.map(one => one.reason)
  assert.deepEqual(reasons(acting), ['KeyScopeDenied'], 'the answer is for ada, and the key is not hers')
  assert.equal(reasons(await proxy.ask('POST', review, {}))?.length, 5)
  const subject = {
    resourceAttributes: { verb: 'create', group: 'authentication.k8s.io', resource: 'selfsubjectreviews' },
  }
  for (const [path, spec] of [
    ['/apis/authorization.k8s.io/v1/subjectaccessreviews', { user: 'admin', ...subject }],
    [explanations, { user: 'admin', ...subject }],
  ] as const) {
    const { status, text } = await stage.admin.ask('POST', path, { spec })
    assert.equal(status, 201, text)
    assert.doesNotMatch(text, /"KeyScope"|impersonate/)
  }
})
