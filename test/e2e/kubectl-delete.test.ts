// kubectl deleting and waiting: cascades, finalizers, grace periods, selectors, conditions.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { withEachKubectl } from '../support/kubectl.ts'
import { openSession, type Session } from '../support/kubectl-session.ts'
import { documents, group, sharedSecret, team } from '../support/sample.ts'

await withEachKubectl(kubectl => {
  describe(`kubectl ${kubectl.version} deletes and waits`, () => {
    let k: Session
    before(async () => {
      k = await openSession(kubectl)
    })
    after(() => k.close())
    const create = (object: unknown) => k.json('create -f -', { stdin: object })
    const gone = async (name: string) =>
      assert.equal(
        await k.fails(`get team ${name}`),
        `Error from server (NotFound): teams.${group} "${name}" not found\n`,
      )
    /** Since 1.34 kubectl names the namespace. */
    const from = (namespace: string) => (kubectl.minor >= 34 ? ` from ${namespace} namespace` : '')
    const family = async (owner: string) => {
      const { metadata } = await create(team(owner))
      const reference = {
        apiVersion: `${group}/v1`,
        kind: 'Team',
        name: owner,
        uid: metadata.uid,
        blockOwnerDeletion: true,
      }
      await create(team(`${owner}-child`, {}, { ownerReferences: [reference] }))
      return `${owner}-child`
    }

    test('delete removes the object and reports it, and gets 404 the second time', async () => {
      await create(team('deleted'))
      assert.equal(await k.ok('delete team deleted'), `team.${group} "deleted" deleted\n`)
      await gone('deleted')
      assert.equal(
        await k.fails('delete team deleted', { code: 1 }),
        `Error from server (NotFound): teams.${group} "deleted" not found\n`,
      )
      assert.equal(await k.ok('delete team deleted --ignore-not-found'), '')
    })

    test('delete --dry-run=server keeps the object', async () => {
      await create(team('kept'))
      const answer = await k.ok('delete team kept --dry-run=server')
      assert.equal(answer, `team.${group} "kept" deleted (server dry run)\n`)
      assert.equal(await k.ok('get team kept -o name'), `team.${group}/kept\n`)
    })

    test('delete --cascade=background deletes the dependents after their owner', async () => {
      const child = await family('background')
      assert.equal(await k.ok('delete team background'), `team.${group} "background" deleted\n`)
      await k.ok(`wait --for=delete team/${child} --timeout=60s`)
      await gone(child)
    })

    test('delete --cascade=foreground deletes the dependents first', async () => {
      const child = await family('foreground')
      const answer = await k.ok('delete team foreground --cascade=foreground')
      assert.equal(answer, `team.${group} "foreground" deleted\n`)
      await gone(child)
      await gone('foreground')
    })

    test('delete --cascade=foreground waits for a dependent that has a finalizer', async () => {
      const child = await family('patient')
      await k.ok(['patch', 'team', child, '--type=merge', '-p', '{"metadata":{"finalizers":["example.com/hold"]}}'])
      await k.ok('delete team patient --cascade=foreground --wait=false')
      await k.ok(`wait team/${child} --for=jsonpath={.metadata.deletionGracePeriodSeconds}=0 --timeout=60s`)
      const { metadata } = await k.json('get team patient')
      assert.deepEqual(metadata.finalizers, ['foregroundDeletion'])
      await k.ok(['patch', 'team', child, '--type=merge', '-p', '{"metadata":{"finalizers":null}}'])
      await k.ok('wait --for=delete team/patient --timeout=60s')
      await gone('patient')
    })

    test('delete --cascade=orphan leaves the dependents without the owner', async () => {
      const child = await family('orphan')
      assert.equal(await k.ok('delete team orphan --cascade=orphan'), `team.${group} "orphan" deleted\n`)
      const { metadata } = await k.json(`get team ${child}`)
      assert.equal(metadata.ownerReferences, undefined)
    })

    test('delete waits for the last finalizer', async () => {
      await create(team('held', {}, { finalizers: ['example.com/hold'] }))
      assert.match(await k.fails('delete team held --timeout=1s'), /timed out waiting for the condition/)
      assert.ok((await k.json('get team held')).metadata.deletionTimestamp)
      await create(team('released', {}, { finalizers: ['example.com/hold'] }))
      const deleting = k.ok('delete team released')
      await k.ok('wait team/released --for=jsonpath={.metadata.deletionGracePeriodSeconds}=0 --timeout=60s')
      await k.ok(['patch', 'team', 'released', '--type=json', '-p', '[{"op":"remove","path":"/metadata/finalizers"}]'])
      assert.equal(await deleting, `team.${group} "released" deleted\n`)
      await gone('released')
    })

    test('delete --grace-period keeps the object that long (D10)', async () => {
      await create(team('lingering'))
      await k.ok('delete team lingering --grace-period=3600 --wait=false')
      const { metadata } = await k.json('get team lingering')
      assert.equal(metadata.deletionGracePeriodSeconds, 3600)
      assert.ok(Date.parse(metadata.deletionTimestamp) > Date.now() + 3_500_000)
      assert.equal(await k.ok('delete team lingering --grace-period=1'), `team.${group} "lingering" deleted\n`)
      await gone('lingering')
    })

    test('delete --force --grace-period=0 removes the object at once', async () => {
      await create(team('forced'))
      await k.ok('delete team forced --grace-period=3600 --wait=false')
      const { stdout, stderr } = await k.run('delete team forced --force --grace-period=0')
      assert.equal(stdout, `team.${group} "forced" force deleted\n`)
      assert.match(stderr, /^Warning: Immediate deletion does not wait/)
      await gone('forced')
    })

    test('delete -l and --all delete only selected objects', async () => {
      const of = (set: string, ...names: string[]) => names.map(name => team(name, {}, { labels: { set } }))
      await k.ok('create -f -', { stdin: documents(...of('x', 'x1', 'x2'), ...of('y', 'y1')) })
      assert.equal(await k.ok('delete teams -l set=x'), `team.${group} "x1" deleted\nteam.${group} "x2" deleted\n`)
      assert.equal(await k.ok('get teams -l set -o name'), `team.${group}/y1\n`)
      const secret = (name: string, namespace: string) => sharedSecret(name, { data: { a: 'YQ==' } }, { namespace })
      await k.ok('create -f -', { stdin: documents(secret('a', 'one'), secret('b', 'one'), secret('a', 'two')) })
      assert.equal(
        await k.ok('delete shs --all -n one'),
        `sharedsecret.${group} "a" deleted${from('one')}\nsharedsecret.${group} "b" deleted${from('one')}\n`,
      )
      assert.equal(await k.ok('get shs -A -o jsonpath={.items[*].metadata.namespace}'), 'two')
    })

    test('delete -f deletes the objects of a file', async () => {
      const file = await k.file('named.yaml', documents(team('named-1'), team('named-2')))
      await k.ok(`create -f ${file}`)
      const answer = await k.ok(`delete -f ${file}`)
      assert.equal(answer, `team.${group} "named-1" deleted\nteam.${group} "named-2" deleted\n`)
    })

    test('wait --for=condition ends when the status has the condition', async () => {
      await create(sharedSecret('ready', { data: { a: 'YQ==' } }))
      const set = (status: string) => {
        const body = `{"status":{"conditions":[{"type":"Tested","status":"${status}"}]}}`
        return k.ok(['patch', 'shs', 'ready', '--subresource=status', '--type=merge', '-p', body])
      }
      await set('False')
      assert.equal(
        await k.fails('wait shs/ready --for=condition=Tested --timeout=1s', { code: 1 }),
        'error: timed out waiting for the condition on sharedsecrets/ready\n',
      )
      const waiting = k.ok('wait shs/ready --for=condition=Tested --timeout=60s')
      await set('True')
      assert.equal(await waiting, `sharedsecret.${group}/ready condition met\n`)
    })

    test('wait --for=jsonpath ends when a field has the value', async () => {
      await create(team('becoming', { displayName: 'A' }))
      const waiting = k.ok('wait team/becoming --for=jsonpath={.spec.displayName}=B --timeout=60s')
      await k.ok(['patch', 'team', 'becoming', '--type=merge', '-p', '{"spec":{"displayName":"B"}}'])
      assert.equal(await waiting, `team.${group}/becoming condition met\n`)
    })

    test('wait --for=delete ends when the object is deleted, and immediately if there is none', async () => {
      await create(team('leaving'))
      const waiting = k.ok('wait team/leaving --for=delete --timeout=60s')
      await k.ok('delete team leaving')
      assert.ok([`team.${group}/leaving condition met\n`, ''].includes(await waiting))
      assert.equal(await k.ok('wait team/leaving --for=delete --timeout=60s'), '')
    })

    test('wait --for=create ends when the object is created', {
      skip: kubectl.minor < 31 && 'since kubectl 1.31',
    }, async () => {
      const waiting = k.ok('wait team/coming --for=create --timeout=60s')
      await create(team('coming'))
      assert.equal(await waiting, `team.${group}/coming condition met\n`)
    })
  })
})
