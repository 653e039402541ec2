// Keys and tokens are shown once. A create with plain kubectl, which does not print them, gets a warning (D13).

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { withEachKubectl } from '../support/kubectl.ts'
import { openSession } from '../support/kubectl-session.ts'
import { keys, openStage, ours } from './people.ts'

const told = /^299 - "the key is in spec\.key of this response and is not shown again; /

test('the response with a generated key warns that the key is shown once; a dry run and a given key do not', async t => {
  const stage = await openStage()
  t.after(() => stage.close())
  const warning = async (query: string, spec: object) => {
    const { status, headers, body } = await stage.admin.ask('POST', keys + query, { spec })
    assert.equal(status, 201)
    const text = String(headers['warning'] ?? '')
    assert.equal(text.includes('plat_'), false)
    return { text, key: body.spec.key }
  }
  const made = await warning('', {})
  assert.match(made.text, told)
  assert.match(made.key, /^plat_/)
  assert.equal((await warning('?dryRun=All', {})).text, '')
  assert.equal((await warning('', { key: 'k'.repeat(40) })).text, '')
})

test('the response with a token warns likewise; a dry run does not', async t => {
  const stage = await openStage()
  t.after(() => stage.close())
  const warning = async (query: string) => {
    const { status, headers, body } = await stage.admin.ask('POST', `${ours}/directclusterendpointtokens${query}`, {})
    assert.equal(status, 201)
    return { text: String(headers['warning'] ?? ''), token: body.status?.token }
  }
  const { text, token } = await warning('')
  assert.match(
    text,
    /^299 - "the token is in status\.token of this response and is not shown again; print it with kubectl create -o /,
  )
  assert.equal(text.includes(token), false)
  assert.deepEqual(await warning('?dryRun=All'), { text: '', token: undefined })
})

await withEachKubectl(kubectl => {
  describe(`kubectl ${kubectl.version}`, () => {
    test('prints the warning next to its one line', async t => {
      const k = await openSession(kubectl)
      t.after(() => k.close())
      const manifest = { apiVersion: 'management.platform.sh/v1', kind: 'OwnedAccessKey', metadata: { name: 'ci' } }
      const { code, stdout, stderr } = await k.run('create -f -', { stdin: manifest })
      assert.equal(code, 0, stderr)
      assert.equal(stdout, 'ownedaccesskey.management.platform.sh/ci created\n')
      assert.match(stderr, /^Warning: the key is in spec\.key of this response and is not shown again/)
    })

    test('prints it for a token, too', async t => {
      const k = await openSession(kubectl)
      t.after(() => k.close())
      const manifest = { apiVersion: 'management.platform.sh/v1', kind: 'DirectClusterEndpointToken' }
      const { code, stdout, stderr } = await k.run('create -f -', { stdin: manifest })
      assert.equal(code, 0, stderr)
      assert.doesNotMatch(stdout, /eyJ/)
      assert.match(stderr, /^Warning: the token is in status\.token of this response and is not shown again/)
    })
  })
})
