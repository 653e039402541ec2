// Reads at an old resourceVersion: the state shown and the last state of the same object must both allow them (D71).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { WatchEvent } from '../support/request.ts'
import { must, openStage, type Person, type Stage, secrets, settled, withoutStatusWrites } from './people.ts'

const mergeType = { 'content-type': 'application/merge-patch+json' }
const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('at an old resourceVersion', () => {
  let stage: Stage
  let eve: Person
  before(async () => {
    stage = await openStage()
    eve = await stage.invite('eve')
  })
  after(() => stage.close())

  let count = 0
  /** A namespace of its own for every test, and what is done to the secrets in it. Every write answers the resourceVersion after it. */
  const place = () => {
    const path = secrets(`old-${++count}`)
    const versionOf = (object: { metadata: { resourceVersion: string } }) => object.metadata.resourceVersion
    const access = (users: readonly string[]) => (users.length ? [{ verbs: ['get'], users }] : null)
    const patch = async (name: string, body: object) => {
      await must(stage.admin.ask('PATCH', `${path}/${name}`, body, mergeType))
      return versionOf(await settled(stage.admin, `${path}/${name}`))
    }
    return {
      path,
      async create(name: string, users: readonly string[] = ['eve'], labels: object = {}) {
        const spec = { data: { a: base64(`${name} 1`) }, access: access(users) ?? [] }
        await must(stage.admin.ask('POST', path, { metadata: { name, labels }, spec }))
        return versionOf(await settled(stage.admin, `${path}/${name}`))
      },
      change: (name: string, to: number, labels?: object) =>
        patch(name, { ...(labels ? { metadata: { labels } } : {}), spec: { data: { a: base64(`${name} ${to}`) } } }),
      share: (name: string) => patch(name, { spec: { access: access(['eve']) } }),
      revoke: (name: string) => patch(name, { spec: { access: null } }),
      remove: (name: string) => must(stage.admin.ask('DELETE', `${path}/${name}`)),
    }
  }
  type Place = ReturnType<typeof place>

  const shown = ({ metadata, spec }: WatchEvent['object']) =>
    `${metadata.name}: ${spec ? Buffer.from(spec.data.a, 'base64').toString() : 'identity'}`
  const listAt = async ({ path }: Place, version: string, query = '') =>
    (await must(eve.ask('GET', `${path}?resourceVersion=${version}&resourceVersionMatch=Exact${query}`))).items.map(
      shown,
    ) as string[]
  /** The replay of a watch from a resourceVersion, up to a secret that is created for this purpose. */
  const replay = async (at: Place, version: string, query = '') => {
    await at.create('zz-end', ['eve'], { on: 'yes' })
    const seen: string[] = []
    const events = eve.watch(`${at.path}?resourceVersion=${version}${query}`)
    for await (const { type, object } of withoutStatusWrites(events)) {
      if (type === 'ERROR') seen.push(`ERROR ${object.code} ${object.reason}`)
      else if (object.metadata.name === 'zz-end') break
      else seen.push(`${type} ${shown(object)}`)
    }
    return seen
  }

  describe('a list', () => {
    test('shows no object whose access was removed since, and the others as they were', async () => {
      const at = place()
      for (const name of ['lost', 'kept', 'still']) await at.create(name)
      const version = await at.create('hidden', [])
      await at.revoke('lost')
      await at.change('kept', 2)
      await at.share('hidden')
      assert.deepEqual(await listAt(at, version), ['kept: kept 1', 'still: still 1'])
      assert.deepEqual(await listAt(at, version, '&fieldSelector=metadata.name%3Dlost'), [])
      assert.deepEqual(await listAt(at, version, '&fieldSelector=metadata.name%3Dkept'), ['kept: kept 1'])
    })

    test('shows a deleted object only if the caller had access to its last state', async () => {
      const at = place()
      await at.create('gone')
      const version = await at.create('lost')
      await at.change('gone', 2)
      await at.remove('gone')
      await at.revoke('lost')
      await at.remove('lost')
      assert.deepEqual(await listAt(at, version), ['gone: gone 1'])
    })

    test('checks the last state of the same object, not of another one with its name', async () => {
      const at = place()
      await at.create('mine')
      const version = await at.create('lost')
      await at.remove('mine')
      await at.create('mine', [])
      await at.revoke('lost')
      await at.remove('lost')
      const second = await at.create('lost', ['eve'])
      assert.deepEqual(await listAt(at, version), ['mine: mine 1'])
      assert.deepEqual(await listAt(at, second), ['lost: lost 1'])
      await at.remove('lost')
      await at.create('lost', [])
      assert.deepEqual(await listAt(at, second), ['lost: lost 1'])
    })

    test('applies selectors to the labels of the shown state', async () => {
      const at = place()
      await at.create('left', ['eve'], { on: 'yes' })
      const version = await at.create('joined')
      await at.change('left', 2, { on: null })
      await at.change('joined', 2, { on: 'yes' })
      assert.deepEqual(await listAt(at, version, '&labelSelector=on%3Dyes'), ['left: left 1'])
    })

    test('omits objects from later pages if access was lost after the first page, and nothing else', async () => {
      const at = place()
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await at.create(name, name === 'c' ? [] : ['eve'])
      const seen: string[] = []
      let next = ''
      for (let page = 0; ; page++) {
        const { items, metadata } = await must(eve.ask('GET', `${at.path}?limit=1${next && `&continue=${next}`}`))
        seen.push(...items.map(shown))
        next = metadata.continue ?? ''
        if (!next) break
        if (page > 0) continue
        await at.revoke('b')
        await at.change('d', 2)
        await at.remove('e')
        await at.create('a-new')
        await at.share('c')
      }
      assert.deepEqual(seen, ['a: a 1', 'd: d 1', 'e: e 1', 'f: f 1'])
    })
  })

  describe('a watch', () => {
    test('replays nothing of an object whose access was granted and removed since', async () => {
      const at = place()
      const version = await at.create('kept')
      await at.create('lost')
      await at.change('lost', 2)
      await at.change('kept', 2)
      await at.revoke('lost')
      await at.create('lost-and-gone')
      await at.change('lost-and-gone', 2)
      await at.revoke('lost-and-gone')
      await at.remove('lost-and-gone')
      assert.deepEqual(await replay(at, version), ['MODIFIED kept: kept 2'])
    })

    test('replays a deletion whose last state is allowed, even if another object has the name now', async () => {
      const at = place()
      await at.create('gone')
      const version = await at.create('mine')
      await at.change('gone', 2)
      await at.remove('gone')
      await at.remove('mine')
      await at.create('mine', [])
      await at.change('mine', 9)
      assert.deepEqual(await replay(at, version), [
        'MODIFIED gone: gone 2',
        'DELETED gone: gone 2',
        'DELETED mine: mine 1',
      ])
    })

    test('replays states before and after a period without access, and none of that period', async () => {
      const at = place()
      const version = await at.create('back')
      await at.change('back', 2)
      await at.revoke('back')
      await at.change('back', 3)
      await at.share('back')
      assert.deepEqual(await replay(at, version), [
        'MODIFIED back: back 2',
        'DELETED back: back 2',
        'ADDED back: back 3',
      ])
    })

    test('is expired if access to a previously visible object was lost, so that the client lists again', async () => {
      for (const isDeleted of [false, true]) {
        const at = place()
        await at.create('kept')
        const version = await at.create('lost')
        await at.change('lost', 2)
        await at.revoke('lost')
        if (isDeleted) await at.remove('lost')
        assert.deepEqual(await replay(at, version), ['ERROR 410 Expired'])
        const named = '&fieldSelector=metadata.name%3Dkept'
        await at.change('kept', 2)
        await at.remove('zz-end')
        const { items, metadata } = await must(eve.ask('GET', at.path))
        assert.deepEqual(items.map(shown), ['kept: kept 2'])
        await at.change('kept', 3)
        assert.deepEqual(await replay(at, metadata.resourceVersion), ['MODIFIED kept: kept 3'])
        await at.remove('zz-end')
        // Objects that the selector excludes were not visible, so the watch misses nothing.
        const events = eve.watch(`${at.path}?resourceVersion=${version}${named}`)
        assert.equal((await events.next()).value.type, 'MODIFIED')
        await events.return?.()
      }
    })

    test('applies selectors to the labels of the shown states', async () => {
      const at = place()
      await at.create('left', ['eve'], { on: 'yes' })
      const version = await at.create('joined')
      await at.change('left', 2)
      await at.change('left', 3, { on: null })
      await at.change('joined', 2, { on: 'yes' })
      assert.deepEqual(await replay(at, version, '&labelSelector=on%3Dyes'), [
        'MODIFIED left: left 2',
        'DELETED left: left 2',
        'ADDED joined: joined 2',
      ])
    })

    test('that is open when access is removed shows the deletion of visible objects', async () => {
      const at = place()
      await at.create('lost')
      const events = withoutStatusWrites(eve.watch(at.path))
      const next = async () => {
        const { value } = await events.next()
        return `${value?.type} ${shown(value?.object)}`
      }
      assert.equal(await next(), 'ADDED lost: lost 1')
      await at.change('lost', 2)
      assert.equal(await next(), 'MODIFIED lost: lost 2')
      await at.revoke('lost')
      assert.equal(await next(), 'DELETED lost: identity')
      await at.share('lost')
      assert.equal(await next(), 'ADDED lost: lost 2')
      await at.remove('lost')
      assert.equal(await next(), 'DELETED lost: lost 2')
      await events.return?.()
    })
  })
})
