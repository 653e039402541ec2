// The contract of a store as tests: every engine runs this suite (memory.test.ts, sqlite.test.ts).

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Key, Store, StoreError } from '../../src/storage/store.ts'
import { keptBy } from '../support/heap.ts'
import { checkAgainstModel, commands } from './store-model.ts'
import {
  check,
  key,
  names,
  type OpenStore,
  put,
  refused,
  refusedNow,
  remove,
  secrets,
  teams,
  text,
  useStore,
  value,
} from './store-samples.ts'
import { watchSuite } from './store-watches.ts'

/**
 * `runs`: how many random scripts are compared with the model. `isShared`: other processes write, too, so a replacement is an
 * update.
 */
export function storeSuite(engine: string, open: OpenStore, runs: number, isShared = false): void {
  const use = useStore(open, () => 0)

  describe(`${engine}: commits`, () => {
    use('an empty store is at revision 1, and the first commit gets 2', async store => {
      assert.equal(store.revision, 1)
      assert.equal(store.get(key('a')), undefined)
      assert.equal(await store.commit([put('a')]), 2)
      assert.equal(store.revision, 2)
    })

    use('one counter serves every bucket', async store => {
      const other = { type: 'put', key: key('x', 'ns', secrets), value: value() } as const
      const revisions = await Promise.all([store.commit([put('a')]), store.commit([other]), store.commit([put('b')])])
      assert.deepEqual(revisions.toSorted(), [2, 3, 4])
    })

    use('the revision stands in the text, and a reader who waited for the commit reads it', async store => {
      const revision = await store.commit([put('a', 0, 'höflich')])
      assert.equal(text(store, 'a'), `{"metadata":{"resourceVersion":"${revision}"},"note":"höflich"}`)
      assert.equal(store.get(key('a'))?.revision, revision)
    })

    use('an entry keeps its own key, not the text that the key was cut from', async store => {
      const bytes = await keptBy(async () => {
        for (let index = 0; index < 50; index++) {
          const url = `/teams/a-team-with-a-long-name-${index}?${'x'.repeat(256 * 1024)}`
          await store.commit([put(url.slice('/teams/'.length, url.indexOf('?')), 0)])
        }
      })
      assert.ok(bytes < 5 * 1024 * 1024, `${bytes} bytes are kept for 50 keys`)
    })

    use('expect decides: exists, missing, conflict, each with the revision that is there', async store => {
      await refused(store.commit([put('a', 5)]), 'missing')
      await refused(store.commit([remove('a')]), 'missing')
      await refused(store.commit([remove('a', 5)]), 'missing')
      assert.equal(await store.commit([put('a', 0)]), 2, 'a refused commit uses no revision')
      assert.equal((await refused(store.commit([put('a', 0)]), 'exists')).revision, 2)
      const conflict = await refused(store.commit([put('a', 7)]), 'conflict')
      assert.deepEqual([conflict.revision, conflict.key], [2, key('a')])
      await refused(store.commit([remove('a', 7)]), 'conflict')
      assert.equal(await store.commit([put('a', 2)]), 3)
      assert.equal(await store.commit([put('a')]), 4, 'no expectation: whatever is there')
      assert.equal(await store.commit([remove('a', 4)]), 5)
      assert.equal(await store.commit([put('a', 0)]), 6)
    })

    use('a check holds a commit to the revision of a key that it does not change', async store => {
      await refused(store.commit([put('a'), check('b', 2)]), 'missing')
      assert.equal(await store.commit([put('a'), check('b', 0)]), 2)
      assert.equal((await refused(store.commit([put('b'), check('a', 0)]), 'exists')).revision, 2)
      assert.deepEqual((await refused(store.commit([put('b'), check('a', 7)]), 'conflict')).key, key('a'))
      assert.equal(await store.commit([put('b'), check('a', 2)]), 3)
      assert.equal(store.get(key('a'))?.revision, 2, 'the key is unchanged')
      await assert.rejects(store.commit([check('a', 2)]), TypeError)
    })

    use('of two commits that each check what the other changes, one wins', async store => {
      const answers = await Promise.allSettled([
        store.commit([put('a', 0), check('b', 0)]),
        store.commit([put('b', 0), check('a', 0)]),
      ])
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
      assert.equal(store.count(teams), 1)
    })

    use('of commits handed in together, each sees those that were given an earlier revision', async store => {
      await store.commit([put('a', 0)])
      const answers = await Promise.allSettled([
        store.commit([put('a', 0)]),
        store.commit([put('a', 2, 'second')]),
        store.commit([remove('a', 2)]),
        store.commit([put('a', 2, 'third')]),
      ])
      const outcomes = answers.map(answer =>
        answer.status === 'fulfilled' ? answer.value : (answer.reason as StoreError).reason,
      )
      assert.equal(outcomes.filter(outcome => outcome === 3).length, 1, String(outcomes))
      const isDeleted = outcomes[2] === 3
      assert.equal(outcomes[0], isDeleted && outcomes[0] === 4 ? 4 : 'exists')
      for (const outcome of outcomes.slice(1)) assert.ok([3, 'conflict', 'missing'].includes(outcome), String(outcomes))
    })

    use('a commit of several keys happens whole: one revision, its events together', async store => {
      const secret = key('s', 'ns', secrets)
      const cursors = [store.watch(teams, 1), store.watch(secrets, 1)]
      const seen = new Promise<void>(resolve => cursors[0]?.wait(resolve)).then(() => store.get(secret)?.revision)
      assert.equal(await store.commit([put('a'), { type: 'put', key: secret, value: value() }]), 2)
      assert.equal(await seen, 2, 'a consumer that is woken by one event reads the other')
      assert.deepEqual(
        cursors.flatMap(cursor => names(cursor.take(9))),
        ['2 created a', '2 created s'],
      )
    })

    use('a commit of several keys fails whole', async store => {
      await store.commit([put('a')])
      await refused(
        store.commit([{ type: 'put', key: key('s', 'ns', secrets), value: value() }, put('a', 9)]),
        'conflict',
      )
      await refused(store.commit([put('b'), { type: 'delete', key: key('s', 'ns', secrets) }]), 'missing')
      assert.equal(store.get(key('s', 'ns', secrets)), undefined)
      assert.equal(store.get(key('b')), undefined)
      assert.equal(store.revision, 2)
    })

    use('a commit with two keys of one bucket, with none, or with a misplaced gap is refused as a bug', async store => {
      await assert.rejects(store.commit([put('a'), put('b')]), TypeError)
      await assert.rejects(store.commit([]), TypeError)
      const { text } = value()
      await assert.rejects(store.commit([{ type: 'put', key: key('a'), value: { text, gap: 3 } }]), TypeError)
      assert.equal(store.revision, 1)
    })

    use('of 1,000 commits with the same expectation exactly one wins each revision', async store => {
      await store.commit([put('a', 0, '0')])
      for (let round = 0; round < 5; round++) {
        const { revision } = store
        const tries = Array.from({ length: 200 }, (_, i) => store.commit([put('a', revision, `${round}/${i}`)]))
        const answers = await Promise.allSettled(tries)
        assert.equal(answers.filter(answer => answer.status === 'fulfilled').length, 1)
        assert.equal(store.revision, revision + 1)
      }
    })

    use('read, change, compare, retry loses no update among 50 writers', async store => {
      await store.commit([put('a', 0, '0')])
      const add = async (): Promise<void> => {
        const entry = store.get(key('a'))
        const { note } = JSON.parse(entry?.text.toString() ?? '') as { note: string }
        const next = put('a', entry?.revision, String(Number(note) + 1))
        await store
          .commit([next])
          .catch((error: StoreError) => (error.reason === 'conflict' ? add() : Promise.reject(error)))
      }
      await Promise.all(Array.from({ length: 50 }, add))
      assert.match(text(store, 'a') ?? '', /"note":"50"/)
    })

    if (isShared)
      use('a replacement is an update', async store => {
        await store.commit([put('a', 0, 'old')])
        assert.equal(await store.replace([{ key: key('a'), revision: 2, value: value({ note: 'new' }) }]), 1)
        assert.match(text(store, 'a') ?? '', /"resourceVersion":"3"},"note":"new"/)
        assert.deepEqual(names(store.watch(teams, 2).take(9)), ['3 updated a'])
      })
    else use('a text is replaced at its revision and without an event, for everyone who reads it', replacedInPlace)

    async function replacedInPlace(store: Store): Promise<void> {
      const labels = { app: 'web' }
      await store.commit([{ type: 'put', key: key('a'), value: value({ labels, note: 'old' }) }])
      await store.commit([put('b', 0, 'kept')])
      const cursor = store.watch(teams, 3)
      const before = store.get(key('a'))
      const next = value({ labels, note: 'a longer one' })
      assert.equal(await store.replace([{ key: key('a'), revision: 2, value: next }]), 1)
      assert.match(text(store, 'a') ?? '', /"resourceVersion":"2"},"note":"a longer one"/)
      assert.equal(store.revision, 3)
      assert.deepEqual([store.get(key('a'))?.revision, before?.revision], [2, 2])
      assert.deepEqual(cursor.take(9), [])
      const terms = [{ key: 'app', values: ['web'] }]
      for (const query of [{ labels: terms }, { revision: 2 }])
        assert.match(store.list({ bucket: teams, ...query }).entries[0]?.text.toString() ?? '', /a longer one/)
      assert.equal(await store.commit([remove('a', 2)]), 4, 'its revision is what a commit expects')
      assert.match(cursor.take(9)[0]?.entry.text.toString() ?? '', /"resourceVersion":"4"},"note":"a longer one"/)
    }

    use('what has moved on, or is gone, is not replaced', async store => {
      await store.commit([put('a', 0, 'old')])
      await store.commit([put('a', 2, 'new')])
      const other = value({ note: 'other' })
      assert.equal(await store.replace([{ key: key('a'), revision: 2, value: other }]), 0)
      assert.equal(await store.replace([{ key: key('none'), revision: 2, value: other }]), 0)
      assert.match(text(store, 'a') ?? '', /"note":"new"/)
      const racing = store.commit([put('a', 3, 'newest')]).then(
        () => 1,
        () => 0,
      )
      const replaced = await store.replace([{ key: key('a'), revision: 3, value: other }])
      // On a shared store either may win, but not both.
      if (!isShared) assert.equal(await racing, 1)
      if (isShared) assert.equal(replaced + (await racing), 1)
      assert.match(text(store, 'a') ?? '', (await racing) ? /"note":"newest"/ : /"note":"other"/)
    })

    use('a closed store refuses commits, after it has answered those before', async store => {
      const last = store.commit([put('a')])
      const closing = store.close()
      await refused(store.commit([put('b')]), 'unavailable')
      assert.equal(await last, 2)
      await closing
    })
  })

  describe(`${engine}: lists`, () => {
    use('a list is in byte order of namespace/name, of all namespaces or of one', async store => {
      const places = ['b/a', 'a/b', 'a-b/x', 'a/a', 'a/ü', 'a/\u{ffee}', 'a/\u{1f600}', 'ab/a', '/z']
      for (const place of places) {
        const [namespace = '', name = ''] = place.split('/')
        await store.commit([{ type: 'put', key: key(name, namespace), value: value() }])
      }
      const listed = (namespace: string) =>
        store.list({ bucket: teams, namespace }).entries.map(entry => `${entry.key.namespace}/${entry.key.name}`)
      assert.deepEqual(
        listed(''),
        places.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
      )
      assert.deepEqual(listed('a'), ['a/a', 'a/b', 'a/ü', 'a/\u{ffee}', 'a/\u{1f600}'])
      assert.deepEqual(listed('nowhere'), [])
      assert.equal(store.count(teams), 9)
      assert.equal(store.count('nothing.test'), 0)
    })

    use('pages of one snapshot show it exactly, whatever is written between them', async store => {
      for (let i = 0; i < 50; i++) await store.commit([put(`n${String(i).padStart(2, '0')}`)])
      const before = store.list({ bucket: teams })
      const seen: string[] = []
      let after: Key | undefined
      for (;;) {
        const query = { bucket: teams, revision: before.revision, limit: 7, ...(after === undefined ? {} : { after }) }
        const page = store.list(query)
        seen.push(...page.entries.map(entry => entry.text.toString()))
        assert.equal(page.revision, before.revision)
        assert.equal(page.remaining, 50 - seen.length)
        assert.equal(page.more, seen.length < 50)
        if (!page.more) break
        after = page.entries.at(-1)?.key
        const at = seen.length
        await store.commit([put(`n${String(at).padStart(2, '0')}`)])
        await store.commit([remove(`n${String(49 - (at % 20)).padStart(2, '0')}`)]).catch(() => {})
        await store.commit([put(`n${at}-new`)])
        await store.commit([remove(`n${at}-new`)])
        await store.commit([put(`n${at}-newer`)])
      }
      assert.deepEqual(
        seen,
        before.entries.map(entry => entry.text.toString()),
      )
    })

    use('a filter is not counted against the limit, and what remains is counted before it', async store => {
      for (let i = 0; i < 10; i++) await store.commit([put(`n${i}`)])
      const filter = (entry: { key: Key }) => Number(entry.key.name.slice(1)) % 2 === 1
      const page = store.list({ bucket: teams, limit: 2, filter })
      assert.deepEqual(
        page.entries.map(entry => entry.key.name),
        ['n1', 'n3'],
      )
      assert.deepEqual([page.more, page.remaining], [true, 6])
      const rest = store.list({ bucket: teams, limit: 9, filter, after: key('n3') })
      assert.deepEqual([rest.entries.length, rest.more, rest.remaining], [3, false, 0])
      const all = store.list({ bucket: teams, limit: 10 })
      assert.deepEqual([all.entries.length, all.more, all.remaining], [10, false, 0])
    })

    use('an index that is built while keys come, change and go finds what is there', async store => {
      const noteOf = ({ text }: { text: Buffer }) => JSON.parse(text.toString()).note as string
      // Of every second object, the writer knows the terms.
      let puts = 0
      const putNote = (name: string, expect: number | undefined, note: string) => {
        const op = put(name, expect, note)
        return puts++ % 2 ? op : { ...op, value: { ...op.value, index: { labels: undefined, terms: [note] } } }
      }
      await Promise.all(Array.from({ length: 1000 }, (_, i) => store.commit([putNote(`n${i}`, 0, `note ${i % 3}`)])))
      let pauses = 0
      const pause = async () => {
        // Keys that the build has passed, and keys that it has yet to come to.
        const [early, late] = [pauses, 999 - pauses]
        await store.commit([putNote(`n${early}`, undefined, 'note 1')])
        await store.commit([putNote(`n${late}`, undefined, 'note 2')])
        await store.commit([remove(`n${500 + pauses}`)])
        await store.commit([putNote(`a${pauses}`, 0, 'note 1')])
        await store.commit([putNote(`z${pauses}`, 0, 'note 1')])
        pauses++
      }
      await store.index(teams, entry => [noteOf(entry)], pause)
      assert.ok(pauses > 2, `${pauses} pauses`)
      await store.commit([putNote('n3', undefined, 'note 2')])
      await store.commit([putNote('n3', undefined, 'note 0')])
      await store.commit([putNote('n4', undefined, 'note 2')])
      await store.commit([remove('n4')])
      await store.commit([remove('n7')])
      for (const note of ['note 0', 'note 1', 'note 2', 'none']) {
        let looked = 0
        const filter = (entry: { text: Buffer }) => {
          looked++
          return noteOf(entry) === note
        }
        const among = { terms: [note], namespaces: [], refs: [] }
        const found = store.list({ bucket: teams, among, filter }).entries
        assert.equal(looked, found.length, 'the index names no other key')
        assert.deepEqual(found, store.list({ bucket: teams, filter }).entries)
      }
    })

    use('a list from the future is refused', async store => {
      refusedNow(() => store.list({ bucket: teams, revision: 2 }), 'future')
    })

    test('lists at any revision, by labels, range and page, and watches equal a naive model', async () => {
      await fc.assert(
        fc.asyncProperty(commands, async script => {
          const store = await open({ now: () => 0 })
          try {
            await checkAgainstModel(store, script)
          } finally {
            await store.close()
          }
        }),
        { numRuns: runs },
      )
    })
  })

  watchSuite(engine, open)
}
