// `npm run demo:sso`: a server and an identity provider on loopback, to try sign-in. Everything is deleted at the end.

import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { audience, startIssuer } from '../test/sign-in/test-issuer.ts'
import { startProvider } from '../test/sign-in/test-provider.ts'
import { startServer } from '../test/support/server.ts'

const directory = mkdtempSync(join(tmpdir(), 'platform-demo-'))
process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
// At the exit of this process, its test server ends and its files are removed.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(0))
const provider = await startProvider()
provider.accounts['ada'] = { groups: ['dev', 'ops'], email: 'ada@example.org', name: 'Ada Lovelace' }
provider.accounts['bob'] = { groups: ['ops'], email: 'bob@example.org', name: 'Bob Builder' }

const issuer = await startIssuer()
const authority = join(directory, 'issuer-ca.crt')
writeFileSync(authority, issuer.ca)
const token = join(directory, 'token')
const issueToken = async (branch: string) => {
  const claims = { sub: 'pipeline', ref: `refs/heads/${branch}`, jti: randomUUID() }
  writeFileSync(token, await issuer.sign(claims), { mode: 0o600 })
}
await issueToken('main')

const secretFile = join(directory, 'client-secret')
writeFileSync(secretFile, provider.secret, { mode: 0o600 })
const file = join(directory, 'auth.yaml')
writeFileSync(
  file,
  `apiVersion: config.platform.sh/v1
kind: AuthConfig
login:
  - name: demo
    displayName: Demo Company
    issuer: { url: "${provider.url}" }
    clientID: ${provider.clientID}
    clientSecretFile: ${secretFile}
    claimMappings:
      username: { claim: sub }
      groups: { claim: groups }
    lifetimes: { refreshAfter: 5s }
jwt:
  - name: ci
    issuer: { url: "${issuer.url}", audiences: ["${audience}"], certificateAuthorityFile: ${authority} }
    claimValidationRules:
      - expression: claims.ref == "refs/heads/main"
        message: only the branch main may sign in
    claimMappings:
      username: { claim: sub }
`,
)
const server = await startServer({ args: ['--auth-config', file] })
await provider.configure({
  redirectUris: [`${server.http}/auth/callback/demo`, `${server.https}/auth/callback/demo`],
  postLogoutRedirectUris: [`${server.http}/auth/login`],
  backchannelLogoutUri: `${server.http}/auth/backchannel-logout/demo`,
})
const { status, text } = await server.request('POST', '/apis/management.platform.sh/v1/teams', {
  body: { metadata: { name: 'web' }, spec: { displayName: 'Web', groups: ['demo:dev'] } },
})
if (status !== 201) throw new Error(`cannot create the team: ${text}`)

console.log(`The server and the identity provider are ready.

Sign in with the browser:   ${server.http}/auth/login
Sign in from the terminal:  npx platform login ${server.http}
Accounts (no password):     ada, with the groups dev and ops; bob, with the group ops
The team web has everybody with the group dev, so ada is in it.

Sign in as a pipeline:      npx platform login ${server.http} --context ci --workload --token-file ${token}
Sign in as administrator:   npx platform login ${server.http} --context admin --access-key - < ${server.directory}/admin.key
As administrator:           npx platform auth explain-token ${token}
                            npx platform offboard demo:bob
If the provider is down:    npx platform admin emergency-key --reason test --data ${server.directory}

Type a command to change the provider. The server notices within 5 seconds of use:
  groups ada ops      ada has only the group ops, and leaves the team
  disable ada         the account is disabled
  enable ada
  token main          a new token for the pipeline; each can sign in once, and only on the branch main
  quit
`)

const input = createInterface({ input: process.stdin })
for await (const line of input) {
  const [command, name = '', ...groups] = line.trim().split(/[\s,]+/)
  const account = provider.accounts[name]
  if (command === 'quit') break
  if (command === '') continue
  if (command === 'token') {
    await issueToken(name || 'main')
    console.log(`${token}: a token of the branch ${name || 'main'}, valid for ten minutes`)
    continue
  }
  if (!account) console.log(`unknown account; use one of ${Object.keys(provider.accounts).join(', ')}`)
  else if (command === 'groups') provider.accounts[name] = { ...account, groups }
  else if (command === 'disable' || command === 'enable') account.disabled = command === 'disable'
  else console.log('unknown command; use groups, disable, enable, token or quit')
  if (account)
    console.log(
      `${name}: groups ${provider.accounts[name]?.groups?.join(', ') || 'none'}${account.disabled ? ', disabled' : ''}`,
    )
}
console.log('Stopping, and deleting everything …')
await server.stop()
await provider.stop()
await issuer.stop()
process.stdin.destroy()
