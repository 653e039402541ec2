// kubectl apply and diff: client-side with prune, server-side with conflicts, and the way from one to the other.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { kinds } from '../../src/kinds/index.ts'
import { withEachKubectl } from '../support/kubectl.ts'
import { openSession, type Session } from '../support/kubectl-session.ts'
import { documents, group, sharedSecret, team } from '../support/sample.ts'

await withEachKubectl(kubectl => {
  describe(`kubectl ${kubectl.version} applies`, () => {
    let k: Session
    before(async () => {
      k = await openSession(kubectl)
    })
    after(() => k.close())
    const apply = (object: unknown, ...flags: string[]) => k.ok(['apply', '-f', '-', ...flags], { stdin: object })
    const managers = async (name: string) => {
      const { metadata } = await k.json(`get team ${name} --show-managed-fields`)
      return metadata.managedFields.map((entry: { manager: string; operation: string }) => {
        return `${entry.manager} ${entry.operation}`
      })
    }

    test('apply creates, keeps unchanged, configures and removes dropped fields', async () => {
      const name = `team.${group}/applied`
      const first = team('applied', { displayName: 'A', description: 'd' })
      assert.equal(await apply(first), `${name} created\n`)
      assert.equal(await apply(first), `${name} unchanged\n`)
      assert.equal(await apply(team('applied', { displayName: 'B' })), `${name} configured\n`)
      const { spec, metadata } = await k.json('get team applied')
      assert.deepEqual(spec, { displayName: 'B', owner: { user: 'admin' }, username: 'applied' })
      assert.equal(metadata.generation, 2)
      assert.deepEqual(await managers('applied'), ['kubectl-client-side-apply Update'])
      assert.match(await k.ok('apply view-last-applied team applied'), /^spec:\n {2}displayName: B$/m)
    })

    test('apply keeps fields of other managers', async () => {
      await apply(team('shared', { displayName: 'A' }))
      await k.ok(['patch', 'team', 'shared', '--type=merge', '-p', '{"spec":{"users":["ada"]}}'])
      await apply(team('shared', { displayName: 'B' }))
      const { spec } = await k.json('get team shared')
      assert.deepEqual([spec.displayName, spec.users], ['B', ['ada']])
    })

    test('apply on an object made by create warns once and continues', async () => {
      await k.ok('create -f -', { stdin: team('adopted') })
      const adopt = await k.run('apply -f -', { stdin: team('adopted', { displayName: 'A' }) })
      assert.equal(adopt.stdout, `team.${group}/adopted configured\n`)
      assert.match(adopt.stderr, /^Warning: resource teams\/adopted is missing the kubectl.kubernetes.io\/last-applied/)
      assert.equal(await apply(team('adopted', { displayName: 'A' })), `team.${group}/adopted unchanged\n`)
    })

    test('apply rejects unknown fields and supports dry runs', async () => {
      assert.match(
        await k.fails('apply -f -', { stdin: team('strict', { colour: 'red' }) }),
        /strict decoding error: unknown field "spec\.colour"/,
      )
      assert.equal(await apply(team('strict'), '--dry-run=server'), `team.${group}/strict created (server dry run)\n`)
      assert.match(await k.fails('get team strict'), /NotFound/)
    })

    test('apply accepts several objects of several kinds', async () => {
      const both = documents(team('many'), sharedSecret('many', { data: { a: 'YQ==' } }, { namespace: 'web' }))
      const names = [`team.${group}/many`, `sharedsecret.${group}/many`]
      assert.equal(await apply(both), names.map(name => `${name} created\n`).join(''))
      assert.equal(await apply(both), names.map(name => `${name} unchanged\n`).join(''))
      assert.equal(await k.ok('diff -f -', { stdin: both }), '')
    })

    test('apply accepts stringData: diffs are empty, and only server-side apply removes dropped keys', async () => {
      const name = `sharedsecret.${group}/plain`
      const plain = (stringData: object) => sharedSecret('plain', { stringData })
      const dataOf = async () => (await k.json('get sharedsecret plain')).spec.data
      assert.equal(await apply(plain({ a: '1', b: '2' })), `${name} created\n`)
      assert.equal(await k.ok('diff -f -', { stdin: plain({ a: '1', b: '2' }) }), '')
      const { metadata } = await k.json('get sharedsecret plain')
      // kubectl does not find stringData in the live object, so it sends it every time. The server stores no change.
      await apply(plain({ a: '1', b: '2' }))
      assert.equal((await k.json('get sharedsecret plain')).metadata.resourceVersion, metadata.resourceVersion)
      await apply(plain({ a: '3' }))
      assert.deepEqual(await dataOf(), { a: 'Mw==', b: 'Mg==' })
      await apply(plain({ a: '3', b: '2' }), '--server-side', '--force-conflicts')
      await apply(plain({ a: '3' }), '--server-side', '--force-conflicts')
      assert.deepEqual(await dataOf(), { a: 'Mw==' })
      assert.equal(await k.ok('diff --server-side -f -', { stdin: plain({ a: '3' }) }), '')
    })

    test('apply --prune with an allowlist deletes objects that are no longer in the file', async () => {
      const one = team('pruned-one', {}, { labels: { set: 'prune' } })
      const two = team('pruned-two', {}, { labels: { set: 'prune' } })
      await k.ok('create -f -', { stdin: team('bystander', {}, { labels: { set: 'prune' } }) })
      await apply(documents(one, two))
      const allow = `--prune-allowlist=${group}/v1/Team`
      assert.equal(
        await apply(one, '--prune', '-l', 'set=prune', allow),
        `team.${group}/pruned-one unchanged\nteam.${group}/pruned-two pruned\n`,
      )
      const left = await k.ok('get teams -l set=prune -o name')
      assert.equal(left, `team.${group}/bystander\nteam.${group}/pruned-one\n`)
    })

    test('apply --server-side creates, changes, and releases dropped fields', async () => {
      const name = `team.${group}/ssa`
      assert.equal(
        await apply(team('ssa', { displayName: 'A', users: ['ada'] }), '--server-side'),
        `${name} serverside-applied\n`,
      )
      assert.deepEqual(await managers('ssa'), ['kubectl Apply'])
      await apply(team('ssa', { displayName: 'A', users: ['grace'] }), '--server-side', '--field-manager=other')
      assert.deepEqual((await k.json('get team ssa')).spec.users, ['ada', 'grace'])
      await apply(team('ssa', { displayName: 'A' }), '--server-side')
      assert.deepEqual((await k.json('get team ssa')).spec.users, ['grace'])
    })

    test('apply --server-side conflicts with another manager until --force-conflicts', async () => {
      const wanted = team('contested', { displayName: 'Mine' })
      await apply(wanted, '--server-side')
      await k.ok([
        'patch',
        'team',
        'contested',
        '--type=merge',
        '--field-manager=other',
        '-p',
        '{"spec":{"displayName":"Theirs"}}',
      ])
      const complaint = await k.fails('apply --server-side -f -', { stdin: wanted, code: 1 })
      const conflict = `error: Apply failed with 1 conflict: conflict with "other" using ${group}/v1: .spec.displayName\n`
      assert.ok(complaint.startsWith(conflict), complaint)
      const forced = await apply(wanted, '--server-side', '--force-conflicts')
      assert.equal(forced, `team.${group}/contested serverside-applied\n`)
      assert.equal(await k.ok('get team contested -o jsonpath={.spec.displayName}'), 'Mine')
      assert.deepEqual(await managers('contested'), ['kubectl Apply'])
    })

    test('apply --server-side takes over from client-side apply', async () => {
      await apply(team('migrated', { displayName: 'A', description: 'd' }))
      await apply(team('migrated', { displayName: 'A', description: 'd' }), '--server-side')
      assert.deepEqual((await managers('migrated')).toSorted(), ['kubectl Apply', 'kubectl-last-applied Apply'])
      await apply(team('migrated', { displayName: 'A' }), '--server-side')
      const { spec } = await k.json('get team migrated')
      assert.deepEqual(spec, { displayName: 'A', owner: { user: 'admin' }, username: 'migrated' })
    })

    test('apply --server-side rejects an unknown field', async () => {
      const complaint = await k.fails('apply --server-side -f -', { stdin: team('typo', { colour: 'red' }) })
      assert.match(complaint, /\.spec\.colour: field not declared in schema/)
    })

    test('diff exits with 0 without differences, and with 1 and the lines otherwise', async () => {
      const wanted = team('differing', { displayName: 'A' })
      await apply(wanted)
      assert.equal(await k.ok('diff -f -', { stdin: wanted }), '')
      const before = await k.json('get team differing')
      const diff = await k.run('diff -f -', { stdin: team('differing', { displayName: 'B' }) })
      assert.equal(diff.code, 1, diff.stderr)
      assert.deepEqual(diff.stdout.match(/^[-+](?![-+]).*/gm), [
        '-  generation: 1',
        '+  generation: 2',
        '-  displayName: A',
        '+  displayName: B',
      ])
      assert.deepEqual(await k.json('get team differing'), before)
    })

    test('diff of an unchanged object is empty for every kind, also after it was read and for the key in use', async () => {
      const samples = kinds.filter(kind => kind.stored && kind.served && kind.verbs.includes('patch'))
      for (const { sample, singular, plural } of samples) {
        const { name, namespace = 'default' } = sample['metadata'] as { name: string; namespace?: string }
        await apply(sample)
        await k.ok(['get', plural, name, '-n', namespace, '-o', 'yaml'])
        assert.equal(await k.ok('diff -f -', { stdin: sample }), '', singular)
        await apply(sample, '--server-side', '--force-conflicts')
        assert.equal(await k.ok('diff --server-side -f -', { stdin: sample }), '', singular)
      }
      const own = withoutServerFields(await k.json('get ownedaccesskey admin'))
      for (const flags of [[], ['--server-side', '--force-conflicts']]) {
        await apply(own, ...flags)
        assert.equal(await k.ok(['diff', '-f', '-', ...flags], { stdin: own }), '', `${flags}`)
      }
    })

    test('diff of a manifest with the secret of a key is empty, whatever the secret is', async () => {
      const brought = (key: string) => ({
        apiVersion: 'management.platform.sh/v1',
        kind: 'OwnedAccessKey',
        metadata: { name: 'brought' },
        spec: { user: 'ada', key },
      })
      const [right, wrong] = ['right-'.repeat(8), 'wrong-'.repeat(8)]
      for (const flags of [[], ['--server-side', '--force-conflicts']]) {
        await apply(brought(right), ...flags)
        for (const key of [right, wrong])
          assert.equal(await k.ok(['diff', '-f', '-', ...flags], { stdin: brought(key) }), '', `${flags} ${key}`)
      }
    })

    test('diff of an object that does not exist shows all of it', async () => {
      const diff = await k.run('diff -f -', { stdin: team('unborn', { displayName: 'A' }) })
      assert.equal(diff.code, 1, diff.stderr)
      assert.match(diff.stdout, /^\+kind: Team$/m)
      assert.match(diff.stdout, /^\+ {2}displayName: A$/m)
      assert.match(await k.fails('get team unborn'), /NotFound/)
    })

    test('diff --server-side shows the result of the apply, and its conflicts', async () => {
      const wanted = team('foreseen', { displayName: 'A' })
      await apply(wanted, '--server-side')
      assert.equal(await k.ok('diff --server-side -f -', { stdin: wanted }), '')
      await k.ok([
        'patch',
        'team',
        'foreseen',
        '--type=merge',
        '--field-manager=other',
        '-p',
        '{"spec":{"displayName":"B"}}',
      ])
      const refused = await k.run('diff --server-side -f -', { stdin: wanted })
      assert.match(refused.stderr, /Apply failed with 1 conflict: conflict with "other"/)
      const forced = await k.run('diff --server-side --force-conflicts -f -', { stdin: wanted })
      assert.deepEqual(forced.stdout.match(/^[-+] {2}displayName.*/gm), ['-  displayName: B', '+  displayName: A'])
    })
  })
})

/** A manifest as a user keeps it. */
function withoutServerFields({ apiVersion, kind, metadata: { name }, spec }: Manifest): Manifest {
  return { apiVersion, kind, metadata: { name }, spec }
}

type Manifest = { apiVersion: string; kind: string; metadata: { name: string }; spec: unknown }
