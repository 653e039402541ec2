// `npm run demo:sso`: a server and an identity provider on loopback, to try sign-in. Everything is deleted at the end.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { startProvider } from '../test/sign-in/test-provider.ts'
import { startServer } from '../test/support/server.ts'

const directory = mkdtempSync(join(tmpdir(), 'platform-demo-'))
const provider = await startProvider()
provider.accounts['ada'] = { groups: ['dev', 'ops'], email: 'ada@example.org', name: 'Ada Lovelace' }
provider.accounts['bob'] = { groups: ['ops'], email: 'bob@example.org', name: 'Bob Builder' }

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

Type a command to change the provider. The server notices within 5 seconds of use:
  groups ada ops      ada has only the group ops, and leaves the team
  disable ada         the account is disabled
  enable ada
  quit
`)

const input = createInterface({ input: process.stdin })
process.once('SIGINT', () => input.close())
process.once('SIGTERM', () => input.close())
for await (const line of input) {
  const [command, name = '', ...groups] = line.trim().split(/[\s,]+/)
  const account = provider.accounts[name]
  if (command === 'quit') break
  if (command === '') continue
  if (!account) console.log(`unknown account; use one of ${Object.keys(provider.accounts).join(', ')}`)
  else if (command === 'groups') provider.accounts[name] = { ...account, groups }
  else if (command === 'disable' || command === 'enable') account.disabled = command === 'disable'
  else console.log('unknown command; use groups, disable, enable or quit')
  if (account)
    console.log(
      `${name}: groups ${provider.accounts[name]?.groups?.join(', ') || 'none'}${account.disabled ? ', disabled' : ''}`,
    )
}
await server.stop()
await provider.stop()
rmSync(directory, { recursive: true, force: true })
process.stdin.destroy()
