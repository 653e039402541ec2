// stringData: plain text in a write, stored and shown as data, as in Kubernetes Secrets.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { must, openStage, ours, type Person, refused, type Stage, secrets, soon } from '../access/people.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const merge = { 'content-type': 'application/merge-patch+json' }
const jsonPatch = { 'content-type': 'application/json-patch+json' }
const apply = { 'content-type': 'application/apply-patch+yaml' }

let stage: Stage
let admin: Person
before(async () => {
  stage = await openStage()
  admin = stage.admin
})
after(() => stage.close())

const places = { SharedSecret: secrets(), ProjectSecret: `${ours}/namespaces/p-shop/projectsecrets` }
for (const [kind, path] of Object.entries(places))
  describe(`stringData of a ${kind}`, () => {
    const make = (name: string, spec: object) => must(admin.ask('POST', path, { metadata: { name }, spec }))
    const get = (name: string) => must(admin.ask('GET', `${path}/${name}`))
    const applied = (name: string, spec: object, options = '?fieldManager=one') =>
      admin.ask(
        'PATCH',
        `${path}/${name}${options}`,
        { apiVersion: 'management.platform.sh/v1', kind, metadata: { name }, spec },
        apply,
      )
    const isHidden = (object: unknown) => assert.doesNotMatch(JSON.stringify(object), /stringData/)

    test('is merged over data in a create, and never shown', async () => {
      const made = await make('made', {
        data: { a: base64('1'), b: base64('2') },
        stringData: { b: 'zwei', c: 'drü ✓' },
      })
      assert.deepEqual(made.spec.data, { a: base64('1'), b: base64('zwei'), c: base64('drü ✓') })
      assert.deepEqual(made.status.version.changed, ['a', 'b', 'c'])
      for (const shown of [made, await get('made'), await must(admin.ask('GET', path))]) isHidden(shown)
      const { fieldsV1 } = made.metadata.managedFields[0]
      assert.deepEqual(Object.keys(fieldsV1['f:spec']['f:data']), ['.', 'f:a', 'f:b', 'f:c'])
    })

    test('works in a replace and in every patch', async () => {
      const made = await make('changed', { data: { a: base64('1') } })
      const put = await must(
        admin.ask('PUT', `${path}/changed`, { ...made, spec: { ...made.spec, stringData: { b: '2' } } }),
      )
      assert.deepEqual(put.spec.data, { a: base64('1'), b: base64('2') })
      const merged = await must(admin.ask('PATCH', `${path}/changed`, { spec: { stringData: { a: '3' } } }, merge))
      assert.deepEqual(merged.spec.data, { a: base64('3'), b: base64('2') })
      const operations = [{ op: 'add', path: '/spec/stringData', value: { c: '4' } }]
      const patched = await must(admin.ask('PATCH', `${path}/changed`, operations, jsonPatch))
      assert.deepEqual(patched.spec.data, { a: base64('3'), b: base64('2'), c: base64('4') })
      for (const shown of [put, merged, patched, await get('changed')]) isHidden(shown)
      assert.equal(patched.status.version.number, 4)
    })

    test('in a server-side apply owns the keys of data, and removes those that it no longer contains', async () => {
      await must(applied('owned', { data: { a: base64('1') }, stringData: { b: '2' } }))
      const other = await must(applied('owned', { stringData: { c: '3' } }, '?fieldManager=two'))
      isHidden(other)
      const { status, body } = await applied('owned', { stringData: { b: 'other' } }, '?fieldManager=two')
      assert.equal(status, 409)
      assert.deepEqual(
        body.details.causes.map((one: { field: string }) => one.field),
        ['.spec.data.b'],
      )
      const left = await must(applied('owned', { stringData: { b: '2' } }))
      assert.deepEqual(left.spec.data, { b: base64('2'), c: base64('3') })
      assert.deepEqual(await must(applied('owned', { stringData: { b: '2' } }, '?fieldManager=one&dryRun=All')), left)
    })

    test('with the stored values changes nothing', async () => {
      const made = await make('same', { stringData: { a: '1' } })
      assert.deepEqual(made.spec.data, { a: base64('1') })
      for (const spec of [{ stringData: { a: '1' } }, { stringData: {} }, { stringData: null }])
        assert.deepEqual(await must(admin.ask('PATCH', `${path}/same`, { spec }, merge)), made)
      const { data: _, ...spec } = made.spec
      const body = { ...made, spec: { ...spec, stringData: { a: '1' } } }
      assert.deepEqual(await must(admin.ask('PUT', `${path}/same`, body)), made)
    })

    test('is validated like data, without repeating a value', async () => {
      const cases: readonly [object, RegExp][] = [
        [{ 'no space': 'canary' }, /spec\.data: Invalid value: "no space"/],
        [{ a: { b: 'canary' } }, /spec\.stringData\.a/],
        [{ a: 17 }, /spec\.stringData\.a/],
        [{ a: 'canary✓'.repeat(60_000) }, /spec\.data: .*540000 bytes decoded; may not be more than 524288/],
      ]
      for (const [stringData, message] of cases) {
        const { status, body } = await admin.ask('POST', path, { metadata: { name: 'bad' }, spec: { stringData } })
        assert.equal(status, 422)
        assert.match(body.message, message)
        assert.doesNotMatch(body.message, /canary/)
      }
      const half = 300 * 1024
      const spec = { data: { a: base64('x'.repeat(half)) }, stringData: { b: 'x'.repeat(half) } }
      await refused(admin.ask('POST', path, { metadata: { name: 'bad' }, spec }), 422, /614400 bytes decoded/)
      await refused(applied('bad', { stringData: { a: 17 } }), 400, /stringData/)
      await refused(admin.ask('GET', `${path}/bad`), 404)
    })

    test('does not help to guess a value without get', async () => {
      await make('unseen', { stringData: { a: 'right' } })
      const access = [{ verbs: ['update', 'patch'], users: ['blind'] }]
      await must(admin.ask('PATCH', `${path}/unseen`, { spec: { access } }, merge))
      const blind = await stage.invite('blind')
      for (const guess of ['wrong', 'right', 'right']) {
        const before = await get('unseen')
        const after = await must(blind.ask('PATCH', `${path}/unseen`, { spec: { stringData: { a: guess } } }, merge))
        assert.equal(after.metadata.generation, before.metadata.generation + 1)
        assert.equal(after.spec, undefined)
        assert.deepEqual((await get('unseen')).spec.data, { a: base64(guess) })
      }
    })
  })

test('stringData on a copy is rejected, also with the copied value and without get', async () => {
  const path = places.ProjectSecret
  await must(admin.ask('POST', secrets(), { metadata: { name: 'source' }, spec: { stringData: { a: 'right' } } }))
  const access = [{ verbs: ['patch'], users: ['guesser'] }]
  const spec = { sharedSecretRef: { name: 'source' }, access }
  await must(admin.ask('POST', path, { metadata: { name: 'copy' }, spec }))
  await soon('the copy', async () => (await must(admin.ask('GET', `${path}/copy`))).spec.data?.a !== undefined)
  const guesser = await stage.invite('guesser')
  const operations = [{ op: 'add', path: '/spec/stringData', value: { a: 'right' } }]
  await refused(guesser.ask('PATCH', `${path}/copy`, operations, jsonPatch), 422, /is a copy of SharedSecret/)
  for (const a of ['right', 'wrong'])
    await refused(guesser.ask('PATCH', `${path}/copy`, { spec: { stringData: { a } } }, merge), 422, /is a copy of/)
  await refused(
    admin.ask('PATCH', `${path}/copy`, { spec: { stringData: { a: 'wrong' } } }, merge),
    422,
    /is a copy of/,
  )
})

test('OpenAPI describes stringData', async () => {
  const { components } = await must(admin.ask('GET', '/openapi/v3/apis/management.platform.sh/v1'))
  for (const kind of Object.keys(places)) {
    const schema = components.schemas[`sh.platform.management.v1.${kind}`].properties.spec.properties.stringData
    assert.equal(schema.type, 'object')
    assert.match(schema.description, /^Write-only/)
  }
})
