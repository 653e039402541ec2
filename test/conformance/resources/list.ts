// Get and list: consistent, in pages, with selectors. Part of the resources suite.

import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { List } from '../../../src/api/resources.ts'
import { SharedSecret } from '../../../src/kinds/shared-secret.ts'
import { Team } from '../../../src/kinds/team.ts'
import { historySeconds } from '../../support/in-process.ts'
import {
  create,
  edited,
  fresh,
  json,
  type OpenHouse,
  plain,
  read,
  refused,
  useHouse,
  version,
  widget,
} from './support.ts'
import { Widget } from './widget.ts'

const names = (list: List) => list.items.map(item => item.object.metadata.name)

export function listSuite(open: OpenHouse): void {
  describe('get', () => {
    const apiServer = useHouse(open)

    test('responds 404 with the plural for a missing object (wire §1.1)', async () => {
      await refused(apiServer().resources.get(Widget, { namespace: 'web', name: 'nope' }), {
        code: 404,
        reason: 'NotFound',
        message: 'widgets.management.platform.sh "nope" not found',
        details: { name: 'nope', group: 'management.platform.sh', kind: 'widgets' },
      })
    })

    test('an empty namespace means default (SPEC §2.2)', async () => {
      const name = fresh()
      await create(apiServer(), name)
      assert.deepEqual(plain(await read(apiServer(), name, 'default')), plain(await read(apiServer(), name, '')))
    })

    test('accepts resourceVersion 0 and any issued one, and rejects a non-number with 400 (wire §1.11)', async () => {
      const { metadata } = await create(apiServer(), fresh())
      const ref = { namespace: '', name: metadata.name ?? '' }
      for (const resourceVersion of ['0', metadata.resourceVersion ?? ''])
        assert.equal(
          (await apiServer().resources.get(Widget, ref, { resourceVersion })).object.metadata.uid,
          metadata.uid,
        )
      for (const resourceVersion of ['abc', '-1', '1.5', '99999999999999999999'])
        await refused(apiServer().resources.get(Widget, ref, { resourceVersion }), {
          code: 400,
          message: /^invalid resource version: /,
        })
    })
  })

  describe('list', () => {
    const apiServer = useHouse(open)
    before(async () => {
      for (const [name, namespace, labels] of [
        ['b', 'one', { tier: 'web', n: '5' }],
        ['a', 'one', { tier: 'db', n: '7' }],
        ['c', 'one', { n: 'x' }],
        ['a', 'two', { tier: 'web' }],
      ] as const)
        await create(apiServer(), name, { metadata: { labels } }, namespace)
    })
    const pick = async (labelSelector: string) =>
      names(await apiServer().resources.list(Widget, { namespace: 'one', labelSelector }))

    test('is sorted by namespace and name, over all namespaces if none is given (wire §1.11)', async () => {
      const { items } = await apiServer().resources.list(Widget)
      const places = items.map(({ object: { metadata } }) => `${metadata.namespace}/${metadata.name}`)
      assert.deepEqual(places, ['one/a', 'one/b', 'one/c', 'two/a'])
      assert.deepEqual(names(await apiServer().resources.list(Widget, { namespace: 'two' })), ['a'])
    })

    test("has the store's revision, also when it is empty (wire §1.11)", async () => {
      const list = await apiServer().resources.list(Widget, { namespace: 'empty' })
      assert.deepEqual(list.items, [])
      assert.equal(list.resourceVersion, String(apiServer().store.revision))
      assert.equal(list.continue, undefined)
    })

    test('items carry kind, apiVersion and creationTimestamp (D10, wire §1.11)', async () => {
      const [item] = (await apiServer().resources.list(Widget, { namespace: 'two' })).items
      assert.deepEqual(plain(item?.object), plain(await read(apiServer(), 'a', 'two')))
      assert.equal(item?.object.kind, 'Widget')
    })

    test('label selectors select as upstream (wire §1.11)', async () => {
      const cases: [string, string[]][] = [
        ['tier=web', ['b']],
        ['tier==web', ['b']],
        ['tier!=web', ['a', 'c']],
        ['tier in (web, db)', ['a', 'b']],
        ['tier notin (web)', ['a', 'c']],
        ['tier', ['a', 'b']],
        ['!tier', ['c']],
        ['n>5', ['a']],
        ['n<7', ['b']],
        ['tier=web,n=5', ['b']],
        ['tier=web,n=6', []],
        ['tier=', []],
        ['', ['a', 'b', 'c']],
      ]
      for (const [selector, expected] of cases) assert.deepEqual(await pick(selector), expected, selector)
    })

    test('an invalid selector is 400 (wire §1.11)', async () => {
      await refused(apiServer().resources.list(Widget, { labelSelector: 'a b' }), {
        code: 400,
        message: /unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt/,
      })
      await refused(apiServer().resources.list(Widget, { labelSelector: 'a,' }), {
        code: 400,
        message: /found '', expected: identifier after ','/,
      })
    })

    test('field selectors support metadata.name and metadata.namespace (wire §1.11)', async () => {
      const pickField = async (fieldSelector: string) =>
        names(await apiServer().resources.list(Widget, { fieldSelector }))
      assert.deepEqual(await pickField('metadata.name=a'), ['a', 'a'])
      assert.deepEqual(await pickField('metadata.name=a,metadata.namespace==two'), ['a'])
      assert.deepEqual(await pickField('metadata.name=a,metadata.namespace=two,metadata.name!=a'), [])
      assert.deepEqual(await pickField('metadata.name=nobody,metadata.namespace=two'), [])
      assert.deepEqual(await pickField('metadata.name!=a'), ['b', 'c'])
      await refused(pickField('spec.note=x'), { code: 400, message: /field label not supported: spec\.note/ })
      await refused(pickField('foo'), { code: 400, message: "invalid selector: 'foo'; can't understand 'foo'" })
      await refused(apiServer().resources.list(Team, { fieldSelector: 'metadata.namespace=x' }), {
        code: 400,
        message: /field label not supported: metadata\.namespace/,
      })
    })
  })

  describe('list: pages', () => {
    const apiServer = useHouse(open)
    before(async () => {
      for (const name of ['a', 'b', 'c', 'd', 'e'])
        await create(apiServer(), name, { metadata: { labels: { v: '1' } } }, 'p')
    })

    test('all pages show the revision of the first during concurrent writes (wire §1.11)', async () => {
      const first = await apiServer().resources.list(Widget, { namespace: 'p', limit: 2 })
      assert.deepEqual(names(first), ['a', 'b'])
      assert.equal(first.remainingItemCount, 3)
      await apiServer().resources.delete(Widget, { namespace: 'p', name: 'c' })
      await create(apiServer(), 'cc', {}, 'p')
      const d = await read(apiServer(), 'd', 'p')
      await apiServer().resources.update(Widget, { namespace: 'p', name: 'd' }, edited(d, { spec: { note: 'new' } }))
      const second = await apiServer().resources.list(Widget, {
        namespace: 'p',
        limit: 2,
        continue: first.continue ?? '',
      })
      assert.deepEqual(names(second), ['c', 'd'])
      assert.equal(second.resourceVersion, first.resourceVersion)
      assert.equal(second.remainingItemCount, 1)
      assert.equal(second.items[1]?.object.spec?.['note'], undefined)
      const third = await apiServer().resources.list(Widget, {
        namespace: 'p',
        limit: 2,
        continue: second.continue ?? '',
      })
      assert.deepEqual(names(third), ['e'])
      assert.equal(third.continue, undefined)
      assert.equal(third.remainingItemCount, undefined)
      assert.deepEqual(names(await apiServer().resources.list(Widget, { namespace: 'p' })), ['a', 'b', 'cc', 'd', 'e'])
    })

    test('with a selector there is no remainingItemCount, and paging continues until nothing is left (wire §1.11)', async () => {
      const found: (string | undefined)[] = []
      let token: string | undefined
      do {
        const page = await apiServer().resources.list(Widget, {
          namespace: 'p',
          labelSelector: 'v=1',
          limit: 1,
          ...(token ? { continue: token } : {}),
        })
        assert.equal(page.remainingItemCount, undefined)
        found.push(...names(page))
        token = page.continue
      } while (token)
      assert.deepEqual(found, ['a', 'b', 'd', 'e'])
    })

    test('a repeated page shows later writes, and only the requested objects', async () => {
      const page = () => apiServer().resources.list(Widget, { namespace: 'p', limit: 2 })
      const before = await page()
      assert.equal((await page()).resourceVersion, before.resourceVersion)
      const other = await apiServer().resources.list(Widget, { namespace: 'p', limit: 1 })
      assert.deepEqual([names(before), names(other)], [['a', 'b'], ['a']])
      await create(apiServer(), 'aa', {}, 'p')
      assert.deepEqual(names(await page()), ['a', 'aa'])
      await apiServer().resources.delete(Widget, { namespace: 'p', name: 'aa' })
      assert.deepEqual(names(await page()), ['a', 'b'])
    })

    test('a limit of 0 or less means none (wire §1.11)', async () => {
      for (const limit of [0, -1])
        assert.equal((await apiServer().resources.list(Widget, { namespace: 'p', limit })).items.length, 5)
    })

    test('rejects tokens of another kind and invented ones with 400 (wire §1.11)', async () => {
      const { continue: token = '' } = await apiServer().resources.list(Widget, { namespace: 'p', limit: 1 })
      for (const [kind, text] of [
        [SharedSecret, token],
        [Widget, 'garbage'],
        [Widget, Buffer.from('{"v":"meta.k8s.io/v1","rv":1,"start":"/a\\u0000"}').toString('base64url')],
        [Widget, 'x'.repeat(5000)],
      ] as const)
        await refused(apiServer().resources.list(kind, { continue: text }), {
          code: 400,
          reason: 'BadRequest',
          message: /^invalid continue token: continue key is not valid/,
        })
    })

    test('rejects a token with a future version with 400 (wire §1.11)', async () => {
      const { continue: token = '' } = await apiServer().resources.list(Widget, { namespace: 'p', limit: 1 })
      const forged = {
        ...JSON.parse(Buffer.from(token, 'base64url').toString()),
        rv: apiServer().store.revision + 1000,
      }
      await refused(
        apiServer().resources.list(Widget, { continue: Buffer.from(JSON.stringify(forged)).toString('base64url') }),
        { code: 400, reason: 'BadRequest', message: /^invalid continue token: / },
      )
    })

    test('rejects resourceVersionMatch with a token with 422 (wire §1.11)', async () => {
      const { continue: token = '' } = await apiServer().resources.list(Widget, { namespace: 'p', limit: 1 })
      for (const resourceVersion of ['', '0', '5'])
        await refused(
          apiServer().resources.list(Widget, {
            continue: token,
            resourceVersion,
            resourceVersionMatch: 'NotOlderThan',
          }),
          {
            code: 422,
            message:
              'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided',
          },
        )
    })

    test('rejects a resourceVersion with a token (wire §1.11)', async () => {
      const { continue: token = '' } = await apiServer().resources.list(Widget, { namespace: 'p', limit: 1 })
      await refused(apiServer().resources.list(Widget, { continue: token, resourceVersion: '5' }), {
        code: 400,
        message: 'specifying resource version is not allowed when using continue',
      })
    })

    test('an expired token is 410 with a token that continues inconsistently (wire §1.11)', async () => {
      const first = await apiServer().resources.list(Widget, { namespace: 'p', limit: 2 })
      await create(apiServer(), 'zz', {}, 'p')
      apiServer().clock.forward(historySeconds + 1)
      await create(apiServer(), 'zzz', {}, 'p')
      const status = await refused(
        apiServer().resources.list(Widget, { namespace: 'p', continue: first.continue ?? '' }),
        {
          code: 410,
          reason: 'Expired',
          message:
            /^The provided continue parameter is too old to display a consistent list result\. You can start a new list without the continue parameter, or use the continue token in this response/,
        },
      )
      assert.equal(status.details, undefined)
      const rest = await apiServer().resources.list(Widget, {
        namespace: 'p',
        continue: status.metadata.continue ?? '',
      })
      assert.deepEqual(names(rest), ['cc', 'd', 'e', 'zz', 'zzz'])
    })
  })

  describe('list: resourceVersion and resourceVersionMatch', () => {
    const apiServer = useHouse(open)
    let then = ''
    before(async () => {
      await create(apiServer(), 'a')
      then = String(apiServer().store.revision)
      await create(apiServer(), 'b')
    })
    const pick = async (resourceVersion?: string, resourceVersionMatch?: string) =>
      apiServer().resources.list(Widget, {
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
        ...(resourceVersionMatch === undefined ? {} : { resourceVersionMatch }),
      })

    test('unset, 0, a version and NotOlderThan show the newest state; Exact shows that revision (wire §1.11)', async () => {
      for (const list of [
        await pick(),
        await pick('0'),
        await pick(then),
        await pick(then, 'NotOlderThan'),
        await pick('0', 'NotOlderThan'),
      ])
        assert.deepEqual(names(list), ['a', 'b'])
      const exact = await pick(then, 'Exact')
      assert.deepEqual(names(exact), ['a'])
      assert.equal(exact.resourceVersion, then)
    })

    test('contradicting options are 422 on ListOptions (wire §1.11)', async () => {
      for (const [asked, message] of [
        [
          pick(undefined, 'Exact'),
          /^ListOptions\.meta\.k8s\.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided$/,
        ],
        [
          pick('0', 'Exact'),
          /resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"$/,
        ],
        [pick('1', 'Foo'), /resourceVersionMatch: Unsupported value: "Foo": supported values: /],
      ] as const)
        await refused(asked, { code: 422, reason: 'Invalid', message })
    })

    test('garbage is 400 (wire §1.11)', async () => {
      await refused(pick('abc'), { code: 400, message: /^invalid resource version: / })
    })

    test('Exact of a compacted revision is 410 (wire §1.11)', async () => {
      apiServer().clock.forward(historySeconds + 1)
      await create(apiServer(), fresh())
      await create(apiServer(), fresh())
      await refused(pick(then, 'Exact'), {
        code: 410,
        reason: 'Expired',
        message: 'The resourceVersion for the provided list is too old.',
      })
    })

    test('a watch can continue from a list without a gap (wire §1.11)', async () => {
      const { resourceVersion } = await pick()
      const made = await apiServer().resources.create(Widget, '', json(widget(fresh())))
      const watch = await apiServer().resources.watch(Widget, { resourceVersion })
      const [event] = (await watch.next()) ?? []
      watch.stop()
      assert.equal(version(event?.document.object), version(made.object))
    })
  })
}
