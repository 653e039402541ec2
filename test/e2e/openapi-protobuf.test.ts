// OpenAPI v2 in protobuf has the same content as in JSON, and kubectl reads types from it.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { withEachKubectl } from '../support/kubectl.ts'
import { openSession, type Session } from '../support/kubectl-session.ts'
import { readOpenApi } from '../support/openapi-protobuf.ts'
import { group } from '../support/sample.ts'
import { startServer } from '../support/server.ts'

const media = 'application/com.github.proto-openapi.spec.v2'

test('the protobuf document decodes to the JSON document, with an ETag of its own', async t => {
  const server = await startServer({ storage: 'memory' })
  t.after(() => server.stop())
  const get = (accept: string) =>
    fetch(`${server.http}/kubernetes/management/openapi/v2`, {
      headers: { Accept: accept, Authorization: `Bearer ${server.adminKey}` },
    })
  const json = await get('application/json')
  const document = (await json.json()) as { definitions: object }
  for (const accept of [`${media}@v1.0+protobuf`, `${media}.v1.0+protobuf, application/json;q=0.5`]) {
    const answer = await get(accept)
    assert.equal(answer.headers.get('content-type'), `${media}.v1.0+protobuf`)
    // The document is large enough to be compressed.
    assert.equal(answer.headers.get('vary'), 'Accept, Accept-Encoding')
    assert.notEqual(answer.headers.get('etag'), json.headers.get('etag'))
    assert.match(answer.headers.get('etag') ?? '', /^"[0-9A-F]{128}"$/)
    assert.deepEqual(readOpenApi(Buffer.from(await answer.arrayBuffer())), document)
  }
  assert.ok(Object.keys(document.definitions).length > 20)
})

await withEachKubectl(kubectl => {
  describe(`kubectl ${kubectl.version} reads OpenAPI v2`, () => {
    let k: Session
    before(async () => {
      k = await openSession(kubectl)
    })
    after(() => k.close())

    test('explain', async () => {
      const plain = await k.ok('explain teams --output plaintext-openapiv2')
      assert.match(plain, /^KIND: +Team\nVERSION: +management\.platform\.sh\/v1\n/m)
      assert.match(plain, /^ +spec\t<Object>\n +Desired state of the team\.$/m)
      const nested = await k.ok('explain team.spec.clusterRoles.name --output plaintext-openapiv2')
      assert.match(nested, /FIELD: +name <string>/)
    })

    test('validation of the items of a List', async () => {
      const list = (spec: object) => ({
        apiVersion: 'v1',
        kind: 'List',
        items: [{ apiVersion: `${group}/v1`, kind: 'Team', metadata: { name: 'listed' }, spec }],
      })
      assert.match(await k.fails('create -f -', { stdin: list({ colour: 'red' }) }), /unknown field "(spec\.)?colour"/)
      assert.equal(await k.ok('create -f -', { stdin: list({ displayName: 'Red' }) }), `team.${group}/listed created\n`)
    })
  })
})
