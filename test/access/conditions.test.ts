// Conditions as clients use them: kubectl wait, diffs, and objects that an earlier release stored (D23).

import assert from 'node:assert/strict'
import { cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { withEachKubectl } from '../support/kubectl.ts'
import { openSession, type Session } from '../support/kubectl-session.ts'
import { startServer } from '../support/server.ts'
import { must, ours, soon } from './people.ts'

const apiVersion = 'management.platform.sh/v1'
const access = [{ verbs: ['get'], users: ['eve'] }]

await withEachKubectl(kubectl => {
  describe(`conditions with kubectl ${kubectl.version}`, () => {
    let k: Session
    before(async () => {
      k = await openSession(kubectl)
    })
    after(() => k.close())

    const objects = [
      { apiVersion, kind: 'SharedSecret', metadata: { name: 'x' }, spec: { access } },
      { apiVersion, kind: 'ProjectSecret', metadata: { name: 'x', namespace: 'p-web' }, spec: { access } },
      {
        apiVersion,
        kind: 'Team',
        metadata: { name: 'x' },
        spec: { access, clusterRoles: [{ name: 'platform-viewer' }] },
      },
    ]
    for (const object of objects)
      test(`kubectl waits until a ${object.kind} is Ready, and its diff is empty then`, async () => {
        await k.ok('apply -f -', { stdin: object })
        const namespace = 'namespace' in object.metadata ? ['-n', String(object.metadata.namespace)] : []
        const resource = `${object.kind.toLowerCase()}/x`
        const wait = ['wait', '--for=condition=Ready', resource, '--timeout=30s', ...namespace]
        assert.match(await k.ok(wait), /condition met/)
        assert.equal(await k.ok('diff -f -', { stdin: object }), '')
        await k.ok('apply --server-side --force-conflicts -f -', { stdin: object })
        assert.equal(await k.ok('diff --server-side --force-conflicts -f -', { stdin: object }), '')
      })

    test('kubectl waits until the roles of a team exist', async () => {
      const team = {
        apiVersion,
        kind: 'Team',
        metadata: { name: 'later' },
        spec: { clusterRoles: [{ name: 'later' }] },
      }
      await k.ok('apply -f -', { stdin: team })
      await k.ok('wait --for=condition=RolesResolved=False team/later --timeout=30s')
      await k.ok('create clusterrole later --verb=get --resource=teams.management.platform.sh')
      await k.ok('wait --for=condition=Ready team/later --timeout=30s')
    })
  })
})

test('objects of an earlier release get their conditions, once', { timeout: 120_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-conditions-'))
  cpSync(join(import.meta.dirname, '../fixtures/release-0.1/directory'), directory, { recursive: true })
  const server = await startServer({ directory })
  const list = async () => {
    const found = []
    for (const plural of ['sharedsecrets', 'projectsecrets', 'teams'])
      found.push(...(await must(server.request('GET', `${ours}/${plural}`))).items)
    return found as {
      metadata: { name: string; resourceVersion: string; generation: number; annotations?: object }
      spec: object
      status?: { conditions?: { type: string; status: string }[]; observedGeneration?: number }
    }[]
  }
  try {
    const namesTeam = (spec: object) => /"teams?":\[?"web"/.test(JSON.stringify(spec))
    await soon('every object has its conditions, and the uid of the team that it names', async () =>
      (await list()).every(
        ({ metadata, spec, status }) =>
          status?.conditions?.some(one => one.type === 'Ready' && one.status !== 'Unknown') &&
          (!namesTeam(spec) || metadata.annotations !== undefined),
      ),
    )
    const before = await list()
    assert.ok(before.length > 0)
    for (const { metadata, status } of before) assert.equal(status?.observedGeneration, metadata.generation)
    await server.restart()
    assert.deepEqual(await list(), before, 'a restart writes nothing')
  } finally {
    await server.stop()
  }
})
