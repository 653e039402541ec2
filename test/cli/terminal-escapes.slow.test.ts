// Names and values of other users cannot control the terminal: every printer uses one sanitiser.

import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { forTerminal } from '../../src/host/sanitize.ts'
import { signedIn } from '../support/cli-home.ts'
import { withTerminal } from '../support/terminal.ts'

const { server, home } = await signedIn()
const evil = 'x\u001b]0;owned\u0007\u001b[2J\u009b31m'
before(async () => {
  const made = await server.request('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', {
    key: server.adminKey,
    body: { metadata: { name: evil }, rules: [] },
  })
  assert.equal(made.status, 201, made.text)
  await home.ok(['set', 'secret', 'app', `token=${evil}`, 'plain=fine'])
})

await withTerminal(() => {
  for (const command of [
    'get clusterroles',
    'get clusterroles -o name',
    'get clusterroles -o json',
    'get clusterroles -o yaml',
    'get secret app.token -o value',
    'get secret app -o json',
    'export secret app',
  ])
    test(`at a terminal: ${command}`, async () => {
      const { text } = await home.terminal(command).ended
      // Nothing but our own colours begins with an escape.
      assert.doesNotMatch(text.replaceAll(/\x1b\[(0|1|31|32|33)m/g, ''), /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/)
    })
})

describe('output into a pipe', () => {
  test('is unchanged', async () => {
    assert.ok((await home.ok('get clusterroles -o name')).includes(evil))
    assert.equal(await home.ok('get secret app.token -o value'), evil)
  })
})

test('our own colours stay, and similar sequences of other users are harmless', () => {
  assert.equal(forTerminal('\x1b[32myes\x1b[0m\n\ta'), '\x1b[32myes\x1b[0m\n\ta')
  assert.equal(forTerminal('\x1b[2J\x1b[33;1H\x1b]0;x\x07\r\x08'), '�[2J�[33;1H�]0;x���')
})
