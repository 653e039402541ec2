// Field selectors of access keys: owner and state, in lists, watches and deletions, within what the caller may see.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { keys, must, openStage, type Person, refused, type Stage, teams } from './people.ts'

let stage: Stage
let admin: Person
let ada: Person
before(async () => {
  stage = await openStage()
  admin = stage.admin
  await must(admin.ask('POST', teams, { metadata: { name: 'web' } }))
  ada = await stage.invite('ada')
  const make = (name: string, spec: object) => must(admin.ask('POST', keys, { metadata: { name }, spec }))
  await make('ada-ci', { user: 'ada' })
  await make('ada-old', { user: 'ada', disabled: true })
  await make('bob-ci', { user: 'bob' })
  await make('web-ci', { team: 'web' })
  await make('robot', { subject: 'robot' })
})
after(() => stage.close())

const selected = (selector: string, more = '') => `${keys}?fieldSelector=${encodeURIComponent(selector)}${more}`
const namesIn = (list: { items: { metadata: { name: string } }[] }) =>
  list.items.map(({ metadata: { name } }) => name.replace(/^ada-.{5}$/, 'ada-invited')).toSorted()
const names = async (who: Person, selector: string) => namesIn(await must(who.ask('GET', selected(selector))))

test('a list selects by user, team and state', async () => {
  assert.deepEqual(await names(admin, 'spec.user=ada'), ['ada-ci', 'ada-invited', 'ada-old'])
  assert.deepEqual(await names(admin, 'spec.team=web'), ['web-ci'])
  assert.deepEqual(await names(admin, 'spec.user=ada,spec.disabled=true'), ['ada-old'])
  assert.deepEqual(await names(admin, 'spec.disabled==true'), ['ada-old'])
  assert.deepEqual(await names(admin, 'spec.user=,spec.team='), ['robot'])
  assert.deepEqual(await names(admin, 'spec.disabled=false,spec.user!=ada,spec.user!=admin'), [
    'bob-ci',
    'robot',
    'web-ci',
  ])
  assert.deepEqual(await names(admin, 'spec.user=ada,metadata.name=bob-ci'), [])
  assert.deepEqual(await names(admin, 'spec.user=ada,metadata.name=ada-ci'), ['ada-ci'])
})

test('pages of a list keep the selection', async () => {
  const first = await must(admin.ask('GET', selected('spec.user=ada', '&limit=1')))
  assert.equal(first.items.length, 1)
  const next = await must(admin.ask('GET', selected('spec.user=ada', `&limit=5&continue=${first.metadata.continue}`)))
  assert.equal(next.items.length, 2)
  for (const { spec } of next.items) assert.equal(spec.user, 'ada')
})

test('shows nobody the keys of others', async () => {
  assert.deepEqual(await names(ada, 'spec.user=bob'), [])
  assert.deepEqual(await names(ada, 'spec.user!=ada'), [])
  assert.deepEqual(await names(ada, 'spec.team=web'), [])
  assert.deepEqual(await names(ada, 'spec.disabled=true'), ['ada-old'])
})

test('other fields and other kinds are 400', async () => {
  for (const field of ['spec.key', 'spec.subject', 'status.digest', 'spec'])
    await refused(admin.ask('GET', selected(`${field}=x`)), 400, /field label not supported/)
  await refused(admin.ask('GET', `${teams}?fieldSelector=spec.user%3Dada`), 400, /field label not supported/)
})

test('a watch follows keys into and out of the selection', async () => {
  const merge = { 'content-type': 'application/merge-patch+json' }
  const { metadata } = await must(admin.ask('GET', keys))
  const events = admin.watch(selected('spec.disabled=true', `&watch=1&resourceVersion=${metadata.resourceVersion}`))
  const next = async () => {
    const { value } = await events.next()
    return [value?.type, value?.object.metadata.name]
  }
  const disable = (name: string, disabled: boolean) =>
    must(admin.ask('PATCH', `${keys}/${name}`, { spec: { disabled } }, merge))
  await disable('bob-ci', true)
  assert.deepEqual(await next(), ['ADDED', 'bob-ci'])
  await disable('bob-ci', false)
  assert.deepEqual(await next(), ['DELETED', 'bob-ci'])
  await events.return?.(undefined)
})

test('deletecollection deletes only selected keys, and needs its permission', async () => {
  for (const selector of ['spec.user=ada', 'spec.user=bob'])
    await refused(ada.ask('DELETE', selected(selector)), 403, /cannot deletecollection/)
  await must(admin.ask('DELETE', selected('spec.user=bob')))
  assert.deepEqual(await names(admin, 'spec.user=bob'), [])
  assert.ok((await names(admin, 'spec.user=ada')).length)
})
