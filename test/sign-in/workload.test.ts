// `platform login --workload` against the real server: a pipeline exchanges its token, works, and cannot exchange it again.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openHome } from '../support/cli-home.ts'
import { entryOf, openSignIn } from './sign-in-stage.ts'
import { startIssuer } from './test-issuer.ts'

test('a pipeline signs in with the token in a file, or in a variable', async () => {
  const issuer = await startIssuer()
  const stage = await openSignIn([entryOf(issuer)])
  const home = await openHome()
  try {
    const file = join(home.directory, 'token')
    writeFileSync(file, await issuer.sign({ sub: 'deploy', jti: 'one', groups: ['ci'] }))
    await home.ok(`login ${stage.server.http} --workload --token-file token`)
    const who = await home.ok('whoami')
    assert.match(who, /ci:deploy/)
    assert.match(who, /ci:ci/)
    assert.match(await home.fails(5, 'create accesskey more'), /access keys/)
    const again = await home.fails(4, `login ${stage.server.http} --workload --token-file token --context other`)
    assert.match(again, /already/)
    const token = await issuer.sign({ sub: 'release', jti: 'two' })
    await home.ok(`login ${stage.server.http} --workload --token-env TOKEN --context second`, {
      env: { ...home.env, TOKEN: token },
    })
    assert.match(await home.ok('whoami --context second'), /ci:release/)
  } finally {
    await home.close()
    await stage.close()
    await issuer.stop()
  }
})
