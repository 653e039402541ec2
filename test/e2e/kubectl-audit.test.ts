// kubectl reads audit events: a table, field selectors, a watch, and a preview of patches by create (D70).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { withEachKubectl } from '../support/kubectl.ts'
import { openSession, type Session } from '../support/kubectl-session.ts'
import { team } from '../support/sample.ts'

await withEachKubectl(kubectl => {
  describe(`kubectl ${kubectl.version} and kinds that are not stored`, () => {
    let k: Session
    before(async () => {
      k = await openSession(kubectl)
      await k.ok('create -f -', { stdin: team('gone') })
      await k.ok('delete team gone')
    })
    after(() => k.close())

    test('get shows who deleted a team', async () => {
      const text = await k.ok('get auditevents --field-selector verb=delete,resource=teams,name=gone')
      assert.match(
        text,
        /^NAME +TIME +USER +VERB +OBJECT +CODE +AGE\naudit-\w{20} +\S+Z +admin +delete +teams\/gone +200 +\d+s\n$/,
      )
    })

    test('pages of one event show all of them', async () => {
      const { items } = await k.json('get auditevents --chunk-size=1 --field-selector resource=teams,user=admin')
      assert.deepEqual(
        items.map((one: { verb: string }) => one.verb),
        ['delete', 'create'],
      )
    })

    test('get -w shows new events', async () => {
      let made = false
      for await (const line of k.lines('get auditevents -w --no-headers --field-selector resource=teams,user=admin')) {
        if (!made) await k.ok('create -f -', { stdin: team('live') })
        made = true
        if (line.includes('teams/live')) break
      }
    })

    test('an unknown selector is explained', async () => {
      assert.match(await k.fails('get auditevents --field-selector color=red'), /field label not supported: color/)
    })

    test('create of a preview shows its result', async () => {
      const object = {
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata: { name: 'web', namespace: 'default', labels: { app: 'web' } },
      }
      const patches = [{ path: 'metadata.labels.app', expression: '"x-" + value' }]
      const preview = { apiVersion: 'management.platform.sh/v1', kind: 'PatchPreview', spec: { object, patches } }
      const { status } = await k.json('create -f -', { stdin: preview })
      assert.equal(status.object.metadata.labels.app, 'x-web')
    })
  })
})
