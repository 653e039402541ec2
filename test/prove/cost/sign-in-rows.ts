// Requests with large tokens of an external issuer. rows.ts lists them.

import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { loadAuthConfig } from '../../../src/auth/jwt/auth-config.ts'
import { openIssuerKeys } from '../../../src/auth/jwt/issuer-keys.ts'
import { openMachineTokens } from '../../../src/auth/jwt/machine-tokens.ts'
import { judge } from './limits.ts'
import type { Row } from './rows.ts'
import { openSystem, type System } from './system.ts'
import { many, words } from './users.ts'

const issuer = 'https://issuer.example.org'
const audience = 'https://platform.example.org'
/** Below 16 KiB, the limit of a token, in base64. */
const maxClaims = 11_800
/** Every measurement needs a token that the server does not know. */
const turns = 6

type Claims = (share: number) => { readonly [name: string]: unknown }

/** As many items as fit into the claims of a token. */
const filled = (share: number, item: (at: number) => unknown) =>
  many(Math.floor((maxClaims * share) / (JSON.stringify(item(9999)).length + 1)), item)
const deep = (levels: number): object => (levels === 0 ? {} : { a: deep(levels - 1) })

const shapes: { readonly [what: string]: Claims } = {
  '200 groups': share => ({ groups: words(200 * share).map(one => one.padEnd(50, 'x')) }),
  'more groups than the server accepts': share => ({ groups: filled(share, at => `g${at}`) }),
  'many small claims': share => Object.fromEntries(filled(share / 2, at => `claim-${at}`).map(name => [name, 0])),
  'many values': share => ({ list: many(4900 * share, () => 0) }),
  'deep claims': share => ({ list: filled(share, () => deep(15)) }),
  'a long text': share => ({ text: 'x'.repeat(maxClaims * share) }),
  escapes: share => ({ text: '\u0001'.repeat((maxClaims / 6) * share) }),
}

export const signInRows: { readonly [what: string]: Row } = {
  ...Object.fromEntries(
    Object.entries(shapes).map(([what, claims]) => [`a token of an issuer with ${what}`, signingIn(claims)]),
  ),
  'a review of a token of 3 MB': async system => {
    const review = (characters: number) => {
      const token = `e${'x'.repeat(characters)}.e${'x'.repeat(characters)}.x`
      const url = '/kubernetes/management/apis/authentication.k8s.io/v1/tokenreviews'
      const headers = { authorization: `Bearer ${system.adminKey}`, 'content-type': 'application/json' }
      return () => system.ask({ method: 'POST', url, headers, body: JSON.stringify({ spec: { token } }) })
    }
    return (await judge(review(700_000), review(1_400_000))).problem
  },
}

function signingIn(claims: Claims): Row {
  return async () => {
    const { sign, openTokens } = await openTestIssuer()
    const system = await openSystem(undefined, openTokens)
    try {
      const send = async (share: number) => {
        const tokens = await Promise.all(many(turns, turn => sign({ ...claims(share), jti: `${share}-${turn}` })))
        let turn = 0
        return () => signIn(system, tokens[turn++ % turns] as string)
      }
      return (await judge(await send(0.5), await send(1))).problem
    } finally {
      await system.close()
    }
  }
}

async function signIn(system: System, token: string): Promise<void> {
  const url = '/kubernetes/management/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const { code, text } = await system.ask({ method: 'POST', url, headers, body: '{}' })
  if (code !== 201 && !text.includes('more than 200 groups')) throw new Error(`${code}: ${text.slice(0, 500)}`)
}

/** An issuer without a network, and the server's part that accepts its tokens. */
async function openTestIssuer() {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const published = { ...(await exportJWK(publicKey)), kid: 'key', alg: 'ES256', use: 'sig' }
  const config = {
    apiVersion: 'config.platform.sh/v1',
    kind: 'AuthConfig',
    jwt: [
      {
        name: 'ci',
        issuer: { url: issuer, audiences: [audience] },
        claimMappings: { username: { claim: 'sub' }, groups: { claim: 'groups' } },
      },
    ],
  }
  const { issuers, problems } = loadAuthConfig(Buffer.from(JSON.stringify(config)), () => ({ text: '' }))
  if (problems.length) throw new Error(JSON.stringify(problems))
  const openTokens: NonNullable<Parameters<typeof openSystem>[1]> = ({ teams, changed }) => {
    const tokens = openMachineTokens({
      teams,
      changed: () => changed(() => true),
      now: Date.now,
      verified: () => {},
      droppedGroups: () => {},
      openKeys: ({ url, discoveryURL }, withdrawn) =>
        openIssuerKeys({
          url,
          discoveryURL,
          fetchJson: async from =>
            from === discoveryURL ? { issuer, jwks_uri: `${issuer}/keys` } : { keys: [published] },
          close: () => {},
          now: Date.now,
          failed: () => {},
          worked: () => {},
          withdrawn,
        }),
    })
    tokens.use(issuers)
    return { machineTokens: tokens, stop: tokens.stop }
  }
  const seconds = Math.floor(Date.now() / 1000)
  const sign = (claims: object) =>
    new SignJWT({ iss: issuer, aud: audience, sub: 'robot', iat: seconds, exp: seconds + 3600, ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: 'key' })
      .sign(privateKey)
  return { sign, openTokens }
}
