// Secret values: encrypted data, hidden fields, keys that are shown once (D5, D12, D13, D21, D28). Part of the resources suite.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Status } from '../../../src/api/errors.ts'
import type { Json, Resource } from '../../../src/api/object.ts'
import type { PatchBody } from '../../../src/api/resources.ts'
import { isMistyped } from '../../../src/kinds/key-format.ts'
import { OwnedAccessKey } from '../../../src/kinds/owned-access-key.ts'
import { ProjectSecret } from '../../../src/kinds/project-secret.ts'
import { SharedSecret } from '../../../src/kinds/shared-secret.ts'
import type { ApiServer } from '../../support/in-process.ts'
import {
  at,
  causes,
  edited,
  events,
  fresh,
  json,
  type OpenHouse,
  plain,
  read,
  refused,
  until,
  useHouse,
  watching,
} from './support.ts'

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
const secret = 'aHVudGVyMi1odW50ZXIyLWh1bnRlcjI='
const clear = 'hunter2-hunter2-hunter2'

/** Everything the store holds of a kind, as text. */
const stored = (apiServer: ApiServer, bucket: string) =>
  apiServer.store
    .list({ bucket })
    .entries.map(entry => entry.text.toString())
    .join('\n')

const merge = (body: unknown): PatchBody => ({ type: 'merge', body: body as Json })
const operations = (...body: object[]): PatchBody => ({ type: 'json', body: json(body) })

export function secretsSuite(open: OpenHouse): void {
  describe('encrypted data', () => {
    const apiServer = useHouse(open)
    const make = async (parts: { metadata?: object; spec?: object }) => {
      const body = json({ ...parts, metadata: { name: fresh('s'), ...parts.metadata } })
      return (await apiServer().resources.create(SharedSecret, '', body)).object
    }

    test('is never stored in clear text, nor is the annotation that repeats it; responses have both (D28)', async () => {
      const annotations = { [lastApplied]: JSON.stringify({ spec: { data: { password: secret } } }), other: 'plain' }
      const made = await make({ metadata: { annotations }, spec: { data: { password: secret } } })
      const project = json({ metadata: { name: fresh('p') }, spec: { data: { password: secret } } })
      await apiServer().resources.create(ProjectSecret, 'p-web', project)
      for (const kind of [SharedSecret, ProjectSecret]) {
        const text = stored(apiServer(), kind.id)
        assert.ok(text.length > 100)
        for (const word of [secret, clear, secret.slice(0, 12)]) assert.equal(text.includes(word), false, kind.kind)
      }
      const got = await read(apiServer(), made.metadata.name ?? '', '', SharedSecret)
      assert.deepEqual(plain(got.spec?.['data']), { password: secret })
      assert.deepEqual(plain(got.metadata.annotations), annotations)
    })

    test('has different ciphertexts for equal secrets (D28)', async () => {
      const sealed = (object: Resource) => {
        const entry = apiServer().store.get({
          bucket: SharedSecret.id,
          namespace: 'default',
          name: object.metadata.name ?? '',
        })
        return String(JSON.parse(String(entry?.text)).spec.data)
      }
      const [one, other] = [
        await make({ spec: { data: { a: secret } } }),
        await make({ spec: { data: { a: secret } } }),
      ]
      assert.match(sealed(one), /^sealed:v1:/)
      assert.notEqual(sealed(one), sealed(other))
    })

    test('that was changed or moved to another object is rejected, and nothing of it is shown (D28)', async () => {
      const [one, other] = [
        await make({ spec: { data: { a: secret } } }),
        await make({ spec: { data: { a: secret } } }),
      ]
      const entryOf = (object: Resource) => {
        const entry = apiServer().store.get({
          bucket: SharedSecret.id,
          namespace: 'default',
          name: object.metadata.name ?? '',
        })
        assert.ok(entry)
        return entry
      }
      const dataOf = (object: Resource) => JSON.parse(entryOf(object).text.toString()).spec.data as string
      const changed = `${dataOf(one).slice(0, -6)}AAAAAA`
      for (const [object, data] of [
        [one, changed],
        [other, dataOf(one)],
      ] as const) {
        const entry = entryOf(object)
        const text = entry.text
          .toString()
          .replace(dataOf(object), data)
          .replace(/"resourceVersion":"\d+"/, '"resourceVersion":""')
        const gap = Buffer.byteLength(text.slice(0, text.indexOf('"resourceVersion":"') + 19))
        await apiServer().store.commit([{ type: 'put', key: entry.key, value: { text: Buffer.from(text), gap } }])
        await assert.rejects(read(apiServer(), object.metadata.name ?? '', '', SharedSecret), (error: Error) => {
          assert.equal(error.message.includes(secret), false)
          return true
        })
      }
      for (const object of [one, other]) await apiServer().store.commit([{ type: 'delete', key: entryOf(object).key }])
    })

    test('values that are not base64 are rejected without being repeated (D6, D29)', async () => {
      const value = 'hunter2-not-encoded!'
      const status = await refused(
        make({ spec: { data: { good: secret, bad: value, worse: [value], 'bad key': secret } } }),
        {
          code: 422,
          reason: 'Invalid',
        },
      )
      assert.deepEqual(causes(status), ['spec.data.bad FieldValueInvalid', 'spec.data.worse FieldValueTypeInvalid'])
      const text = JSON.stringify(status)
      for (const word of [value, secret]) assert.equal(text.includes(word), false)
      const keys = await refused(make({ spec: { data: { 'bad key': secret, [`${'k'.repeat(254)}`]: secret } } }), {
        code: 422,
      })
      assert.deepEqual(causes(keys), ['spec.data FieldValueInvalid', 'spec.data FieldValueInvalid'])
      assert.equal(JSON.stringify(keys).includes(secret), false)
    })

    test('padding is required; empty values and 512 KiB decoded are valid, more is not (D29, D72)', async () => {
      await refused(make({ spec: { data: { a: 'YQ' } } }), { code: 422 })
      await make({ spec: { data: { a: '' } } })
      const most = Buffer.alloc(512 * 1024).toString('base64')
      const made = await make({ spec: { data: { a: most } } })
      assert.equal(made.spec?.['data'] && (made.spec['data'] as { a: string }).a.length, most.length)
      const more = Buffer.alloc(512 * 1024 + 1).toString('base64')
      const status = await refused(make({ spec: { data: { a: more } } }), { code: 422 })
      assert.deepEqual(causes(status), ['spec.data FieldValueInvalid'])
      assert.ok((status.message ?? '').length < 500)
    })
  })

  describe('access keys', () => {
    const apiServer = useHouse(open)
    const makeOne = async (spec: object = {}, parts: { metadata?: object } = {}, options = {}) => {
      const body = json({ metadata: { name: fresh('key'), ...parts.metadata }, spec: { user: 'ada', ...spec } })
      return (await apiServer().resources.create(OwnedAccessKey, '', body, options)).object
    }
    const ref = (object: Resource) => ({ namespace: '', name: object.metadata.name ?? '' })
    const keyOf = (object: Resource | undefined) => object?.spec?.['key']
    const digestOf = async (object: Resource) =>
      (await apiServer().internalClient.get(OwnedAccessKey, ref(object))).object.status?.['digest'] as string
    test('show the key in the response to their creation and nowhere else (D13)', async () => {
      await watching(
        apiServer(),
        { kind: OwnedAccessKey, resourceVersion: String(apiServer().store.revision) },
        async watch => {
          const made = await makeOne()
          const key = keyOf(made)
          assert.ok(typeof key === 'string' && key.startsWith('plat_') && !isMistyped(key))
          const got = await apiServer().resources.get(OwnedAccessKey, ref(made))
          const listed = await apiServer().resources.list(OwnedAccessKey)
          const updated = await apiServer().resources.update(
            OwnedAccessKey,
            ref(made),
            edited(got.object, { spec: { description: 'x' } }),
          )
          const patched = await apiServer().resources.patch(
            OwnedAccessKey,
            ref(made),
            merge({ spec: { description: 'y' } }),
          )
          const unchanged = await apiServer().resources.patch(OwnedAccessKey, ref(made), merge({}))
          const removed = await apiServer().resources.deleteCollection(OwnedAccessKey, {
            fieldSelector: `metadata.name=${made.metadata.name}`,
          })
          const seen = await events(watch, 4)
          const answers = [
            got,
            ...listed.items,
            updated,
            patched,
            unchanged,
            ...removed.items,
            ...seen.map(event => event.document),
          ]
          for (const { object, json: bytes } of answers) {
            assert.equal(keyOf(object), undefined)
            assert.equal(object.status?.['digest'], undefined)
            assert.equal(Buffer.from(bytes).includes(key), false)
          }
          assert.equal(stored(apiServer(), OwnedAccessKey.id).includes(key), false)
        },
      )
    })

    test('show none in a dry run (D13)', async () => {
      assert.equal(keyOf(await makeOne({}, {}, { dryRun: true })), undefined)
      const own = `own-key-${'x'.repeat(32)}`
      assert.equal(JSON.stringify(await makeOne({ key: own }, {}, { dryRun: true })).includes(own), false)
    })

    test('may be given: 32 visible characters or more (D12)', async () => {
      const key = `mine-${fresh()}-${'x'.repeat(32)}`
      assert.equal(keyOf(await makeOne({ key })), key)
      for (const bad of ['short', `with space ${'x'.repeat(32)}`, `umlaut-ü-${'x'.repeat(32)}`]) {
        const status = await refused(makeOne({ key: bad }), { code: 422 })
        assert.deepEqual(causes(status), ['spec.key FieldValueInvalid'])
        assert.equal(JSON.stringify(status).includes(bad), false)
      }
    })

    test('that begin with plat_ need a valid checksum (D12)', async () => {
      const key = keyOf(await makeOne()) as string
      const typo = `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`
      const status = await refused(makeOne({ key: typo }), { code: 422, message: /checksum/ })
      assert.equal(JSON.stringify(status).includes(typo), false)
    })

    test('that exist already are rejected (D12)', async () => {
      const key = `known-${fresh()}-${'x'.repeat(32)}`
      await makeOne({ key })
      const status = await refused(makeOne({ key }), { code: 422 })
      assert.deepEqual(causes(status), ['spec.key FieldValueInvalid'])
      assert.equal(JSON.stringify(status).includes(key), false)
    })

    test('given by several concurrent requests belong to one of them; failed requests keep none (D12)', async () => {
      for (let round = 0; round < 5; round++) {
        const key = `raced-${fresh()}-${'x'.repeat(32)}`
        const answers = await Promise.allSettled(Array.from({ length: 4 }, () => makeOne({ key })))
        const made = answers.filter(one => one.status === 'fulfilled')
        assert.equal(made.length, 1)
        for (const answer of answers) if (answer.status === 'rejected') assert.equal(answer.reason.code, 422)
        await apiServer().resources.delete(OwnedAccessKey, ref((made[0] as { value: Resource }).value))
      }
      const [taken, key] = [await makeOne(), `spare-${fresh()}-${'x'.repeat(32)}`]
      await refused(makeOne({ key }, { metadata: { name: taken.metadata.name } }), { code: 409 })
      await refused(
        apiServer().resources.update(
          OwnedAccessKey,
          ref(taken),
          edited(taken, { metadata: { resourceVersion: '1' }, spec: { key } }),
        ),
        { code: 409 },
      )
      await makeOne({ key })
    })

    test('must fit into a header (D12)', async () => {
      await makeOne({ key: `${fresh()}-`.padEnd(4000, 'x') })
      const status = await refused(makeOne({ key: 'x'.repeat(4001) }), { code: 422 })
      assert.deepEqual(causes(status), ['spec.key FieldValueInvalid'])
      assert.ok(JSON.stringify(status).length < 1000)
    })

    test('leave no activity behind: times are deleted with the object, and with each key (D19, D22)', async () => {
      const made = await makeOne()
      const { uid = '' } = made.metadata
      const id = (await digestOf(made)).slice(0, 12)
      await apiServer().resources.act(OwnedAccessKey, ref(made), 'rotate', undefined)
      await until(async () => apiServer().unused.includes(`${uid}/${id}`))
      assert.equal(apiServer().unused.includes(uid), false)
      await apiServer().resources.delete(OwnedAccessKey, ref(made))
      await until(async () => apiServer().unused.includes(uid))
    })

    test('without a name get one, and the caller as default owner (D14, D24)', async () => {
      const { object } = await apiServer().resources.create(OwnedAccessKey, '', json({}))
      assert.match(object.metadata.name ?? '', /^key-[a-z0-9]{5}$/)
      assert.equal(object.spec?.['user'], 'admin')
    })

    test('keep their key in a replace or patch without one, and accept a new one, without showing it (D13)', async () => {
      const made = await makeOne()
      const before = await digestOf(made)
      const got = await read(apiServer(), made.metadata.name ?? '', '', OwnedAccessKey)
      const updated = (
        await apiServer().resources.update(OwnedAccessKey, ref(made), edited(got, { spec: { description: 'x' } }))
      ).object
      assert.equal(await digestOf(made), before)
      const key = `new-${fresh()}-${'x'.repeat(32)}`
      const replaced = await apiServer().resources.update(OwnedAccessKey, ref(made), edited(updated, { spec: { key } }))
      assert.notEqual(await digestOf(made), before)
      assert.equal(keyOf(replaced.object), undefined, 'the answer to a replace leaves the key out')
      const other = `other-${fresh()}-${'x'.repeat(32)}`
      const patched = await apiServer().resources.patch(OwnedAccessKey, ref(made), merge({ spec: { key: other } }))
      assert.equal(keyOf(patched.object), undefined, 'the answer to a patch leaves the key out')
      assert.equal(await digestOf(made), createHash('sha256').update(other).digest('hex'))
    })

    test('do not reveal the digest to clients that send one (D13)', async () => {
      const made = await makeOne()
      const before = await digestOf(made)
      const body = edited(await read(apiServer(), made.metadata.name ?? '', '', OwnedAccessKey), {
        status: { digest: 'mine' },
      })
      await apiServer().resources.update(OwnedAccessKey, ref(made), body)
      assert.equal(await digestOf(made), before)
    })

    test('in the annotation of kubectl apply become <redacted>, other fields are kept (D28)', async () => {
      const key = `applied-${fresh()}-${'x'.repeat(32)}`
      const manifest = (spec: object) => JSON.stringify({ kind: 'OwnedAccessKey', spec })
      const hidden = { user: 'ada', key, identity: { connectorData: clear, email: 'a@b' } }
      const made = await makeOne({ key }, { metadata: { annotations: { [lastApplied]: manifest(hidden) } } })
      const kept = JSON.parse(
        (await read(apiServer(), made.metadata.name ?? '', '', OwnedAccessKey)).metadata.annotations?.[lastApplied] ??
          '',
      )
      assert.deepEqual(kept.spec, {
        user: 'ada',
        key: '<redacted>',
        identity: { connectorData: '<redacted>', email: 'a@b' },
      })
      const annotations = { [lastApplied]: `{"spec":{"key":"${key}"` }
      const patched = await apiServer().resources.patch(OwnedAccessKey, ref(made), merge({ metadata: { annotations } }))
      assert.equal(patched.object.metadata.annotations?.[lastApplied], '<redacted>')
      for (const text of [[{ spec: { key } }], key, { spec: [{ key }] }, { spec: { identity: key } }]) {
        const one = { [lastApplied]: JSON.stringify(text) }
        await apiServer().resources.patch(OwnedAccessKey, ref(made), merge({ metadata: { annotations: one } }))
        assert.equal(stored(apiServer(), OwnedAccessKey.id).includes(key), false, JSON.stringify(text))
      }
      assert.equal(stored(apiServer(), OwnedAccessKey.id).includes(key), false)
    })

    test('belong to one of user, team and subject, permanently (D14)', async () => {
      assert.deepEqual(causes(await refused(makeOne({ team: 'web' }), { code: 422 })), [
        'spec.team FieldValueForbidden',
      ])
      const made = await makeOne()
      const change = apiServer().resources.patch(OwnedAccessKey, ref(made), merge({ spec: { user: 'eve' } }))
      assert.deepEqual(causes(await refused(change, { code: 422 })), ['spec.user FieldValueInvalid'])
      for (const name of ['system:masters', 'platform:team:web'])
        assert.deepEqual(causes(await refused(makeOne({ user: name, groups: [name] }), { code: 422 })), [
          'spec.user FieldValueInvalid',
          'spec.groups[0] FieldValueInvalid',
        ])
    })
  })

  describe('hidden fields', () => {
    const apiServer = useHouse(open)
    const login = { idToken: `id-${clear}`, accessToken: `access-${clear}`, refreshToken: `refresh-${clear}` }
    const ref = (object: Resource) => ({ namespace: '', name: object.metadata.name ?? '' })
    const make = async () => {
      const spec = {
        user: 'ada',
        identity: { email: 'ada@example.com', connectorData: clear },
        oidcLogin: { ...login, lastRefresh: '2026-01-01T00:00:00Z' },
      }
      const body = json({ metadata: { name: fresh('key') }, spec })
      return (await apiServer().resources.create(OwnedAccessKey, '', body)).object
    }
    const inside = (object: Resource) => plain(apiServer().opened(OwnedAccessKey, ref(object)).spec)
    const all = [clear, ...Object.values(login)]

    test('never appear in a response, and are encrypted at rest (D21, D28)', async () => {
      await watching(
        apiServer(),
        { kind: OwnedAccessKey, resourceVersion: String(apiServer().store.revision) },
        async watch => {
          const made = await make()
          const got = await apiServer().resources.get(OwnedAccessKey, ref(made))
          const listed = await apiServer().resources.list(OwnedAccessKey)
          const updated = await apiServer().resources.update(
            OwnedAccessKey,
            ref(made),
            edited(got.object, { spec: { description: 'x' } }),
          )
          const patched = await apiServer().resources.patch(
            OwnedAccessKey,
            ref(made),
            merge({ spec: { description: 'y' } }),
          )
          const tried = await apiServer().resources.patch(
            OwnedAccessKey,
            ref(made),
            merge({ spec: { description: 'z' } }),
            { dryRun: true },
          )
          const deleted = await apiServer().resources.delete(OwnedAccessKey, ref(made))
          const seen = await events(watch, 4)
          const answers = [
            made,
            got.object,
            ...listed.items.map(item => item.object),
            updated.object,
            patched.object,
            tried.object,
            deleted,
            ...seen.map(event => event.document.object),
          ]
          for (const answer of answers)
            for (const word of all) assert.equal(JSON.stringify(answer).includes(word), false)
          assert.deepEqual(plain((got.object.spec as { identity: object }).identity), { email: 'ada@example.com' })
          assert.equal(stored(apiServer(), OwnedAccessKey.id).includes(clear), false)
        },
      )
    })

    test('are kept by updates, patches and applies of callers who cannot see them (D5)', async () => {
      const made = await make()
      const before = inside(made)
      const got = await read(apiServer(), made.metadata.name ?? '', '', OwnedAccessKey)
      await apiServer().resources.update(OwnedAccessKey, ref(made), edited(got, { spec: { description: 'x' } }))
      await apiServer().resources.patch(OwnedAccessKey, ref(made), merge({ spec: { description: 'y' } }))
      await apiServer().resources.patch(
        OwnedAccessKey,
        ref(made),
        operations({ op: 'replace', path: '/spec/description', value: 'z' }),
      )
      const body = json({ apiVersion: made.apiVersion, kind: made.kind, spec: { displayName: 'D' } })
      await apiServer().resources.patch(
        OwnedAccessKey,
        ref(made),
        { type: 'apply', body, force: false },
        { fieldManager: 'a' },
      )
      assert.deepEqual(inside(made), { ...before, description: 'z', displayName: 'D' })
    })

    test('change when they are sent again, and are deleted with their container (D5)', async () => {
      const made = await make()
      await apiServer().resources.patch(
        OwnedAccessKey,
        ref(made),
        merge({ spec: { identity: { connectorData: 'newer' } } }),
      )
      assert.equal((inside(made) as { identity: { connectorData: string } }).identity.connectorData, 'newer')
      await apiServer().resources.patch(OwnedAccessKey, ref(made), merge({ spec: { oidcLogin: null } }))
      assert.equal('oidcLogin' in (inside(made) ?? {}), false)
    })

    test('cannot be guessed: a write that names one always gets the same response (D5)', async () => {
      const made = await make()
      await apiServer().resources.patch(
        OwnedAccessKey,
        ref(made),
        merge({ spec: { identity: { connectorData: clear } } }),
        { fieldManager: 'other' },
      )
      const got = await read(apiServer(), made.metadata.name ?? '', '', OwnedAccessKey)
      const ways = (connectorData: string): [PatchBody, string][] => [
        [merge({ spec: { identity: { connectorData } } }), 'me'],
        [operations({ op: 'add', path: '/spec/identity/connectorData', value: connectorData }), 'me'],
        [operations({ op: 'add', path: '/spec/identity', value: { email: 'ada@example.com', connectorData } }), 'me'],
        [applied({ connectorData }, false), 'me'],
        [applied({ connectorData }, true), 'me'],
      ]
      const applied = (identity: object, force: boolean): PatchBody => ({
        type: 'apply',
        body: json({ apiVersion: made.apiVersion, kind: made.kind, spec: { identity } }),
        force,
      })
      const answer = (asked: Promise<{ object: Resource }>) =>
        asked.then(
          ({ object }) => plain(object),
          error => error.status,
        )
      const tell = async (guess: string) => [
        ...(await Promise.all(
          ways(guess).map(([body, fieldManager]) =>
            answer(apiServer().resources.patch(OwnedAccessKey, ref(made), body, { fieldManager, dryRun: true })),
          ),
        )),
        await answer(
          apiServer().resources.update(
            OwnedAccessKey,
            ref(made),
            edited(got, { spec: { identity: { email: 'ada@example.com', connectorData: guess } } }),
            { fieldManager: 'me', dryRun: true },
          ),
        ),
      ]
      const [right, wrong] = [await tell(clear), await tell('guess')]
      assert.deepEqual(right, wrong)
      for (const [index, one] of right.entries())
        if (index !== 3) assert.equal((one as Resource).metadata?.generation, got.metadata.generation)
      assert.equal((right[3] as Status).reason, 'Conflict')
      // A real write always counts as a change.
      for (const [index, value] of [clear, 'guess', 'guess'].entries()) {
        const body = merge({ spec: { identity: { connectorData: value } } })
        const { object } = await apiServer().resources.patch(OwnedAccessKey, ref(made), body)
        assert.equal(object.metadata.generation, (got.metadata.generation ?? 0) + index + 1)
      }
      const again = await apiServer().resources.patch(OwnedAccessKey, ref(made), merge({ spec: { description: 'x' } }))
      const same = await apiServer().resources.patch(OwnedAccessKey, ref(made), merge({ spec: { description: 'x' } }))
      assert.equal(same.object.metadata.resourceVersion, again.object.metadata.resourceVersion)
    })

    test('copy, move and test cannot access them, their containers, or write-only fields: 422 with the pointer (D5)', async () => {
      const made = await make()
      const secrets = [
        '/spec/identity/connectorData',
        '/spec/identity',
        '/spec',
        '',
        '/spec/oidcLogin/idToken',
        '/spec/key',
        '/status/digest',
        '/status',
      ]
      for (const pointer of secrets)
        for (const operation of [
          { op: 'copy', from: pointer, path: '/spec/description' },
          { op: 'move', from: pointer, path: '/metadata/annotations' },
          { op: 'test', path: pointer, value: {} },
        ]) {
          const status = await refused(apiServer().resources.patch(OwnedAccessKey, ref(made), operations(operation)), {
            code: 422,
            reason: 'Invalid',
            message: 'the server rejected our request due to an error in our request',
          })
          const [cause] = status.details?.causes ?? []
          assert.match(cause?.message ?? '', /may not touch/, `${operation.op} ${pointer}`)
        }
      const ok = operations({ op: 'test', path: '/spec/identity/email', value: 'ada@example.com' })
      await apiServer().resources.patch(OwnedAccessKey, ref(made), ok)
    })
  })

  describe('encrypted data in patches', () => {
    const apiServer = useHouse(open, { authorize: (_, { verb }) => ({ allowed: verb !== 'get', reason: '' }) })

    test('cannot be read by callers without get (D5)', async () => {
      const name = fresh('s')
      await apiServer().resources.create(SharedSecret, '', json({ metadata: { name }, spec: { data: { a: secret } } }))
      for (const operation of [
        { op: 'test', path: '/spec/data/a', value: secret },
        { op: 'copy', from: '/spec/data', path: '/metadata/annotations' },
        { op: 'move', from: '/spec/data/a', path: '/spec/description' },
      ])
        await refused(apiServer().resources.patch(SharedSecret, at(name), operations(operation)), { code: 422 })
    })

    test('cannot be guessed by callers without get (D5)', async () => {
      const name = fresh('s')
      const body = json({ metadata: { name }, spec: { data: { a: secret, b: secret } } })
      await apiServer().resources.create(SharedSecret, '', body, { fieldManager: 'other' })
      const applied = json({
        apiVersion: SharedSecret.apiVersion,
        kind: SharedSecret.kind,
        spec: { data: { a: secret } },
      })
      const tell = (guess: string) =>
        Promise.all(
          [
            merge({ spec: { data: { a: guess } } }),
            operations({ op: 'replace', path: '/spec/data/a', value: guess }),
            operations({ op: 'replace', path: '/spec/data', value: { a: guess, b: secret } }),
            { type: 'apply', body: JSON.parse(JSON.stringify(applied).replace(secret, guess)), force: false } as const,
          ].map(one =>
            apiServer()
              .resources.patch(SharedSecret, at(name), one, { fieldManager: 'me', dryRun: true })
              .then(
                ({ object }) => plain(object.metadata),
                error => error.status,
              ),
          ),
        )
      assert.deepEqual(await tell(secret), await tell('YQ=='))
    })
  })
}
