// Create: fields that the server sets, rejections, and dry runs. Part of the resources suite.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { timestamp } from '../../../src/api/object.ts'
import { SharedSecret } from '../../../src/kinds/shared-secret.ts'
import { Team } from '../../../src/kinds/team.ts'
import { slowness } from '../../support/cpu-time.ts'
import {
  causes,
  create,
  events,
  fresh,
  isThere,
  json,
  type OpenHouse,
  plain,
  read,
  refused,
  specOf,
  spoken,
  useHouse,
  watching,
  widget,
} from './support.ts'
import { Widget } from './widget.ts'

/** The CPU time of a body in this process; over HTTP that includes writing and reading it. */
async function spent<T>(run: () => Promise<T>): Promise<{ cpuTime: number; answers: T }> {
  const before = process.cpuUsage()
  const answers = await run()
  const { user, system } = process.cpuUsage(before)
  return { cpuTime: (user + system) / 1000, answers }
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

export function createSuite(open: OpenHouse): void {
  describe('create', () => {
    const apiServer = useHouse(open)

    test('sets uid, creationTimestamp, generation, resourceVersion and managedFields, whatever the client sends (SPEC §2.2, wire §1.9)', async () => {
      const name = fresh()
      const body = widget(name, {
        metadata: {
          uid: 'mine',
          creationTimestamp: '2001-01-01T00:00:00Z',
          deletionTimestamp: '2001-01-01T00:00:00Z',
          deletionGracePeriodSeconds: 5,
          generation: 9,
          selfLink: '/x',
          managedFields: [{ manager: 'x', operation: 'Update' }],
        },
        spec: { size: 1 },
      })
      const { metadata, apiVersion, kind } = (
        await apiServer().resources.create(Widget, '', body, { fieldManager: 'me' })
      ).object
      const { uid = '', resourceVersion = '', managedFields, ...rest } = metadata
      assert.equal(apiVersion, 'management.platform.sh/v1')
      assert.equal(kind, 'Widget')
      assert.match(uid, uuid)
      assert.match(resourceVersion, /^\d+$/)
      assert.deepEqual(plain(rest), {
        name,
        namespace: 'default',
        generation: 1,
        creationTimestamp: timestamp(apiServer().clock.now()),
      })
      assert.deepEqual(plain(managedFields), [
        {
          apiVersion: 'management.platform.sh/v1',
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:spec': { '.': {}, 'f:size': {} } },
          manager: 'me',
          operation: 'Update',
          time: timestamp(apiServer().clock.now()),
        },
      ])
    })

    test('returns the same object as a later get (wire §1.9)', async () => {
      const created = await apiServer().resources.create(Widget, '', widget(fresh(), { spec: { note: 'ü 🙂' } }))
      const got = await apiServer().resources.get(Widget, { namespace: '', name: created.object.metadata.name ?? '' })
      assert.deepEqual(plain(got.object), plain(created.object))
      assert.equal(Buffer.from(got.json).toString(), Buffer.from(created.json).toString())
    })

    test('infers kind and apiVersion, rejects another kind with 422 and another version with 400 (D24, wire §1.7)', async () => {
      const { resources } = apiServer()
      await refused(resources.create(Widget, '', json({ kind: 'Team', metadata: { name: 'x' } })), {
        code: 422,
        reason: 'Invalid',
        message: 'Widget.management.platform.sh "x" is invalid: kind: Invalid value: "Team": must be Widget',
      })
      await refused(resources.create(Widget, '', json({ apiVersion: 'x/v1', metadata: { name: 'x' } })), {
        code: 400,
        reason: 'BadRequest',
        message:
          'the API version in the data (x/v1) does not match the expected API version (management.platform.sh/v1)',
      })
    })

    test('rejects a body that is not an object (wire §1.7)', async () => {
      for (const body of [[], 'text', 7, true])
        await refused(apiServer().resources.create(Widget, '', json(body)), {
          code: 400,
          message: /^the object provided is unrecognized \(must be of type Widget\): /,
        })
    })

    test('responds 409 AlreadyExists for an existing name (wire §1.1)', async () => {
      const name = fresh()
      await create(apiServer(), name)
      await refused(apiServer().resources.create(Widget, '', widget(name)), {
        code: 409,
        reason: 'AlreadyExists',
        message: `widgets.management.platform.sh "${name}" already exists`,
        details: { name, group: 'management.platform.sh', kind: 'widgets' },
      })
    })

    test('the 409 mentions that the existing object is terminating (wire §1.1)', async () => {
      const name = fresh()
      await create(apiServer(), name, { metadata: { finalizers: ['x.io/a'] } })
      await apiServer().resources.delete(Widget, { namespace: '', name })
      await refused(apiServer().resources.create(Widget, '', widget(name)), {
        code: 409,
        reason: 'AlreadyExists',
        message: `object is being deleted: widgets.management.platform.sh "${name}" already exists`,
      })
    })

    test('rejects a resourceVersion with 400 (wire §1.9)', async () => {
      await refused(apiServer().resources.create(Widget, '', widget('x', { metadata: { resourceVersion: '1' } })), {
        code: 400,
        reason: 'BadRequest',
        message: 'resourceVersion should not be set on objects to be created',
      })
    })

    test('ignores status (D9)', async () => {
      const made = await create(apiServer(), fresh(), { status: { phase: 'Done' } })
      assert.equal(made.status, undefined)
    })

    test('treats null as absent, in metadata, spec and below (wire §1.7)', async () => {
      const { metadata, spec } = await create(apiServer(), fresh(), {
        metadata: {
          creationTimestamp: null,
          labels: { a: null, b: 'c' },
          annotations: null,
          finalizers: [],
          uid: null,
        },
        spec: { note: null, size: 2, settings: { x: null } },
      })
      assert.deepEqual(plain(metadata.labels), { b: 'c' })
      assert.equal(metadata.annotations, undefined)
      assert.equal(metadata.finalizers, undefined)
      assert.deepEqual(plain(spec), { size: 2, settings: {} })
      assert.equal(
        (await apiServer().resources.create(Widget, '', json({ metadata: { name: fresh() }, spec: null }))).object.spec,
        undefined,
      )
    })

    test('dryRun returns the object without resourceVersion, stores nothing, uses no revision, emits no event (wire §1.9)', async () => {
      const name = fresh()
      await watching(apiServer(), { resourceVersion: String(apiServer().store.revision) }, async watch => {
        const before = apiServer().store.revision
        const { metadata } = (await apiServer().resources.create(Widget, '', widget(name), { dryRun: true })).object
        assert.match(metadata.uid ?? '', uuid)
        assert.equal(metadata.creationTimestamp, timestamp(apiServer().clock.now()))
        assert.equal(metadata.resourceVersion, undefined)
        assert.equal(apiServer().store.revision, before)
        assert.equal(await isThere(apiServer().resources, Widget, { namespace: '', name }), false)
        const marker = fresh('marker')
        await create(apiServer(), marker)
        assert.deepEqual(spoken(await events(watch, 1)), [`ADDED ${marker}`])
      })
    })

    test('dryRun is rejected if the create would be (wire §1.9)', async () => {
      const name = fresh()
      await create(apiServer(), name)
      await refused(apiServer().resources.create(Widget, '', widget(name), { dryRun: true }), { code: 409 })
      await refused(apiServer().resources.create(Widget, '', widget('Bad_Name'), { dryRun: true }), { code: 422 })
    })

    test('treats constructor and __proto__ as ordinary keys (D4)', async () => {
      const name = fresh()
      const data = '{"__proto__":"YQ==","constructor":"Yg==","hasOwnProperty":"Yw=="}'
      const body = JSON.parse(
        `{"metadata":{"name":"${name}","labels":{"constructor":"x"},"annotations":{"toString":"y"}},"spec":{"data":${data}}}`,
      )
      await apiServer().resources.create(SharedSecret, '', body)
      const got = await read(apiServer(), name, '', SharedSecret)
      assert.equal(JSON.stringify(got.spec?.['data']), data)
      assert.equal(JSON.stringify(got.metadata.labels), '{"constructor":"x"}')
      const { items } = await apiServer().resources.list(SharedSecret, { labelSelector: 'constructor=x' })
      assert.equal(items.length, 1)
      assert.equal(({} as { polluted?: unknown })['polluted'], undefined)
      const settings = JSON.parse('{"__proto__":"1"}')
      const made = await create(apiServer(), fresh(), { spec: { settings } })
      assert.equal(JSON.stringify(made.spec?.['settings']), '{"__proto__":"1"}')
    })
  })

  describe('create: names', () => {
    const apiServer = useHouse(open, { random: size => new Uint8Array(size) })

    test('generateName generates the name and stays in the object (SPEC §2.2, wire §1.9)', async () => {
      const { metadata } = (
        await apiServer().resources.create(Widget, '', json({ metadata: { generateName: 'gen-' } }))
      ).object
      assert.equal(metadata.name, 'gen-bbbbb')
      assert.equal(metadata.generateName, 'gen-')
    })

    test('responds 409 if the generated name exists (SPEC §2.2, §7)', async () => {
      const body = json({ metadata: { generateName: 'twice-' } })
      await apiServer().resources.create(Widget, '', body)
      const status = await refused(apiServer().resources.create(Widget, '', body), {
        code: 409,
        reason: 'AlreadyExists',
        message:
          'widgets.management.platform.sh "twice-bbbbb" already exists, the server was not able to generate a unique name for the object',
      })
      assert.equal(status.details?.retryAfterSeconds, 1)
    })

    test('truncates a long prefix so that the suffix fits into 63 characters (SPEC §8)', async () => {
      const generateName = 'p'.repeat(70)
      const { metadata } = (await apiServer().resources.create(Widget, '', json({ metadata: { generateName } }))).object
      assert.equal(metadata.name, `${'p'.repeat(58)}bbbbb`)
    })

    test('generateName is ignored with a name (SPEC §2.2)', async () => {
      const name = fresh()
      assert.equal((await create(apiServer(), name, { metadata: { generateName: 'idle-' } })).metadata.name, name)
    })

    test('requires name or generateName (D24, wire §1.9)', async () => {
      await refused(apiServer().resources.create(Widget, '', json({ metadata: {} })), {
        code: 422,
        message:
          'Widget.management.platform.sh "" is invalid: metadata.name: Required value: name or generateName is required',
      })
    })

    test('the prefix follows the rules of names (SPEC §2.2)', async () => {
      const status = await refused(
        apiServer().resources.create(Widget, '', json({ metadata: { generateName: 'No_' } })),
        {
          code: 422,
        },
      )
      assert.ok(causes(status).includes('metadata.generateName FieldValueInvalid'))
    })

    test('uses the namespace of the path, with default as the default, and rejects another one with 400 (SPEC §2.2, wire §1.9)', async () => {
      const { resources } = apiServer()
      assert.equal((await create(apiServer(), fresh(), {}, 'web')).metadata.namespace, 'web')
      assert.equal((await create(apiServer(), fresh(), { metadata: { namespace: '' } })).metadata.namespace, 'default')
      await refused(resources.create(Widget, 'web', widget('x', { metadata: { namespace: 'other' } })), {
        code: 400,
        message: 'the namespace of the provided object does not match the namespace sent on the request',
      })
      const status = await refused(resources.create(Widget, 'Not_A_Label', widget('x')), { code: 422 })
      assert.deepEqual(causes(status), ['metadata.namespace FieldValueInvalid'])
    })

    test('clears the namespace of a cluster-scoped kind (wire §1.9)', async () => {
      const body = json({ metadata: { name: fresh('team'), namespace: 'web' } })
      assert.equal((await apiServer().resources.create(Team, '', body)).object.metadata.namespace, undefined)
    })
  })

  describe('create: generated names', () => {
    let draw = 0
    // Every name but the third comes twice.
    const apiServer = useHouse(open, {
      random: size => new Uint8Array(size).fill([0, 0, 1, 1, 2][draw++ % 5] as number),
    })

    test('defaults that depend on the name use the generated one (D23)', async () => {
      const make = async () =>
        (await apiServer().resources.create(Team, '', json({ metadata: { generateName: 'gen-' } }))).object
      for (const name of ['gen-bbbbb', 'gen-ccccc', 'gen-ddddd']) {
        const made = await make()
        assert.deepEqual([made.metadata.name, made.spec?.['username']], [name, name])
      }
    })
  })

  describe('create: rejections', () => {
    const apiServer = useHouse(open)
    const refuse = (parts: Parameters<typeof widget>[1], name = 'x') =>
      refused(apiServer().resources.create(Widget, '', widget(name, parts)), { code: 422, reason: 'Invalid' })

    test('reports all errors of metadata together (D6, wire §1.10)', async () => {
      const status = await refuse(
        {
          metadata: {
            labels: { 'bad key': 'ok', fine: 'bad value!', [`${'l'.repeat(64)}`]: '' },
            annotations: { 'a/b/c': '' },
            finalizers: ['not valid!'],
            ownerReferences: [{ apiVersion: 'v1', kind: 'X' }],
          },
          spec: { size: -1 },
        },
        'Not_Valid',
      )
      assert.deepEqual(causes(status).toSorted(), [
        'metadata.annotations FieldValueInvalid',
        'metadata.finalizers FieldValueInvalid',
        'metadata.labels FieldValueInvalid',
        'metadata.labels FieldValueInvalid',
        'metadata.labels FieldValueInvalid',
        'metadata.name FieldValueInvalid',
        'metadata.ownerReferences[0].name FieldValueRequired',
        'metadata.ownerReferences[0].uid FieldValueRequired',
        'spec.size FieldValueInvalid',
      ])
      assert.match(status.message ?? '', /^Widget\.management\.platform\.sh "Not_Valid" is invalid: \[.*\]$/)
      assert.match(status.message ?? '', /name part must be no more than 63 bytes/)
    })

    test('reports at most a hundred errors of a body, and stops looking for more (D6)', async () => {
      const many = Array.from({ length: 240 }, (_, index) => index.toString(36))
      const map = (value: (word: string) => [string, unknown]) => Object.fromEntries(many.map(value))
      const bodies = {
        labels: { metadata: { name: 'x', labels: map(word => [`${word}!`, '']) } },
        annotations: { metadata: { name: 'x', annotations: map(word => [`${word}!`, '']) } },
        finalizers: { metadata: { name: 'x', finalizers: many.map(word => `${word}!`) } },
        references: { metadata: { name: 'x', ownerReferences: many.map(uid => ({ uid })) } },
        'the same tag': { metadata: { name: 'x' }, spec: { tags: many.map(() => 'a') } },
        'no tags': { metadata: { name: 'x' }, spec: { tags: many.map(() => 1) } },
        'no settings': { metadata: { name: 'x' }, spec: { settings: map(word => [word, 1]) } },
      }
      for (const [what, body] of Object.entries(bodies)) {
        const { cpuTime, answers } = await spent(async () => [
          await refused(apiServer().resources.create(Widget, '', json(body)), { code: 422 }),
          await refused(
            apiServer().resources.patch(
              Widget,
              { namespace: '', name: 'x' },
              {
                type: 'apply',
                body: json({ apiVersion: 'management.platform.sh/v1', kind: 'Widget', ...body }),
                force: false,
              },
              { fieldManager: 'a' },
            ),
            {},
          ),
        ])
        for (const status of answers) {
          assert.ok(causes(status).length <= 100, what)
          assert.ok(JSON.stringify(status).length < 100_000, `${what}: ${JSON.stringify(status).length}`)
        }
        assert.match(answers[0]?.message ?? '', /, and more than 100 errors\]$/, what)
        // Far more than it takes, and far less than it took.
        assert.ok(cpuTime < 600 || cpuTime < 600 * slowness(), `${what}: ${cpuTime} ms`)
      }
    })

    test('does not validate the items of a list or map above its limit, and names the limit (D72)', async () => {
      const many = Array.from({ length: 20_000 }, (_, index) => index.toString(36))
      const map = Object.fromEntries(many.map(word => [`${word}!`, '']))
      for (const [field, body] of Object.entries({
        'metadata.labels': { metadata: { name: 'x', labels: map } },
        'metadata.annotations': { metadata: { name: 'x', annotations: map } },
        'metadata.finalizers': { metadata: { name: 'x', finalizers: many } },
        'metadata.ownerReferences': { metadata: { name: 'x', ownerReferences: many.map(uid => ({ uid })) } },
        'spec.tags': { metadata: { name: 'x' }, spec: { tags: many } },
        'spec.settings': { metadata: { name: 'x' }, spec: { settings: map } },
      })) {
        const status = await refused(apiServer().resources.create(Widget, '', json(body)), { code: 422 })
        assert.deepEqual(causes(status), [`${field} FieldValueTooMany`])
        assert.match(status.message ?? '', /Too many: 20000: must have at most 250 items/)
        const apply = json({ apiVersion: 'management.platform.sh/v1', kind: 'Widget', ...body })
        const at = { namespace: '', name: 'x' }
        const applied = apiServer().resources.patch(
          Widget,
          at,
          { type: 'apply', body: apply, force: false },
          { fieldManager: 'a' },
        )
        assert.deepEqual(causes(await refused(applied, { code: 422 })), [`${field} FieldValueTooMany`])
      }
    })

    test('rejects a word that is not a boolean, including names of JavaScript properties (D4)', async () => {
      for (const ready of ['constructor', 'toString', '__proto__']) {
        const status = await refuse({ spec: { ready } })
        assert.doesNotMatch(status.message ?? '', /did you mean/)
      }
      assert.match((await refuse({ spec: { ready: 'Yes' } })).message ?? '', /did you mean true\?/)
    })

    test('explains the rule of names (wire §1.9)', async () => {
      const status = await refuse({}, 'Bad')
      const rule = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
      assert.equal(
        status.message,
        `Widget.management.platform.sh "Bad" is invalid: metadata.name: Invalid value: "Bad": ${rule}`,
      )
      await refuse({}, 'x'.repeat(254))
    })

    test('rejects __proto__ as a label, which is not a valid label key, without side effects (D4)', async () => {
      const body = JSON.parse('{"metadata":{"name":"x","labels":{"__proto__":"y"}}}')
      await refused(apiServer().resources.create(Widget, '', body), { code: 422 })
    })

    test('annotations hold 256 KiB in all (D7)', async () => {
      const half = 'x'.repeat(131_072)
      const status = await refuse({ metadata: { annotations: { one: half, two: half } } })
      assert.equal(
        status.message,
        'Widget.management.platform.sh "x" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes',
      )
      await create(apiServer(), fresh(), { metadata: { annotations: { one: half, two: half.slice(6) } } })
    })

    test('at most one owner is the controller (SPEC §2.2)', async () => {
      const one = { apiVersion: 'v1', kind: 'A', name: 'a', uid: '1', controller: true }
      const status = await refuse({ metadata: { ownerReferences: [one, { ...one, kind: 'B', name: 'b', uid: '2' }] } })
      assert.match(
        status.message ?? '',
        /Only one reference can have Controller set to true\. Found "true" in references for A\/a and B\/b/,
      )
    })

    test('the finalizers orphan and foregroundDeletion exclude each other (wire §1.10)', async () => {
      assert.deepEqual(causes(await refuse({ metadata: { finalizers: ['orphan', 'foregroundDeletion'] } })), [
        'metadata.finalizers FieldValueInvalid',
      ])
    })

    test('warns about an unqualified finalizer and about duplicate owners, which are merged (wire §1.10)', async () => {
      const told: string[] = []
      const owner = { apiVersion: 'v1', kind: 'A', name: 'a', uid: '1' }
      const body = widget(fresh(), { metadata: { finalizers: ['foo'], ownerReferences: [owner, owner] } })
      const { object } = await apiServer().resources.create(Widget, '', body, { warn: text => told.push(text) })
      assert.equal(object.metadata.ownerReferences?.length, 1)
      assert.deepEqual(told.toSorted(), [
        '.metadata.ownerReferences contains duplicate entries; API server dedups owner references',
        'metadata.finalizers: "foo": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers',
      ])
    })

    test('wrong types in metadata are 400, in spec 422, and all are reported (wire §1.7)', async () => {
      await refused(apiServer().resources.create(Widget, '', widget('x', { metadata: { labels: { a: 1 } } })), {
        code: 400,
        reason: 'BadRequest',
        message:
          'Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string',
      })
      const status = await refuse({ spec: { size: 'big', note: 7, tags: 'red', ready: 'yes' } })
      assert.deepEqual(causes(status).toSorted(), [
        'spec.note FieldValueTypeInvalid',
        'spec.ready FieldValueTypeInvalid',
        'spec.size FieldValueTypeInvalid',
        'spec.tags FieldValueTypeInvalid',
      ])
      assert.match(status.message ?? '', /spec\.tags in body must be of type array: "string"/)
      assert.match(status.message ?? '', /spec\.ready.*did you mean true\?/)
    })

    test('duplicate items of a set and duplicate keys of a map list are 422 (D23)', async () => {
      const status = await refuse({ spec: { tags: ['a', 'a'], parts: [{ name: 'p' }, { name: 'p' }] } })
      assert.deepEqual(causes(status).toSorted(), [
        'spec.parts[1] FieldValueDuplicate',
        'spec.tags[1] FieldValueDuplicate',
      ])
    })
  })

  describe('create: field validation', () => {
    const apiServer = useHouse(open)
    const body = () => json({ metadata: { name: fresh(), zzz: 1 }, spec: { size: 1, foo: { bar: 2 } }, bar: 3 })

    test('Warn is the default: unknown fields are dropped, each with a warning (wire §1.8)', async () => {
      const told: string[] = []
      const { object } = await apiServer().resources.create(Widget, '', body(), { warn: text => told.push(text) })
      assert.deepEqual(specOf(object), { size: 1 })
      assert.deepEqual(told, ['unknown field "metadata.zzz"', 'unknown field "bar"', 'unknown field "spec.foo"'])
    })

    test('Strict refuses them, all named (wire §1.8)', async () => {
      await refused(apiServer().resources.create(Widget, '', body(), { fieldValidation: 'Strict' }), {
        code: 400,
        reason: 'BadRequest',
        message:
          'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "metadata.zzz", unknown field "bar", unknown field "spec.foo"',
      })
    })

    test('Ignore drops them silently (wire §1.8)', async () => {
      const told: string[] = []
      const options = { fieldValidation: 'Ignore', warn: (text: string) => told.push(text) } as const
      assert.deepEqual(specOf((await apiServer().resources.create(Widget, '', body(), options)).object), { size: 1 })
      assert.deepEqual(told, [])
    })

    test('a deprecated field causes a warning (D6)', async () => {
      const told: string[] = []
      const sent = widget(fresh(), { spec: { old: 'x' } })
      const { object } = await apiServer().resources.create(Widget, '', sent, { warn: text => told.push(text) })
      assert.deepEqual(specOf(object), { old: 'x' })
      assert.deepEqual(told, ['management.platform.sh/v1 Widget: spec.old is deprecated'])
    })
  })
}
