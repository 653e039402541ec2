// Tokens of an external issuer for the authorize benchmark: an issuer in this process, without a network.

import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Json } from '../src/api/object.ts'
import { loadAuthConfig } from '../src/auth/jwt/auth-config.ts'
import { openIssuerKeys } from '../src/auth/jwt/issuer-keys.ts'
import { type MachineTokens, type MachineTokensOptions, openMachineTokens } from '../src/auth/jwt/machine-tokens.ts'

const url = 'https://issuer.example.org'
const noop = () => {}

export async function openBenchTokens() {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  const jwk = { ...(await exportJWK(publicKey)), kid: 'bench' }
  const text = JSON.stringify({
    apiVersion: 'config.platform.sh/v1',
    kind: 'AuthConfig',
    jwt: [{ name: 'ci', issuer: { url, audiences: ['us'] }, claimMappings: { username: { claim: 'sub' } } }],
  })
  const { issuers } = loadAuthConfig(Buffer.from(text), () => ({ problem: 'no files' }))
  const fetchJson = async (address: string): Promise<Json> =>
    address === `${url}/keys` ? ({ keys: [jwk] } as unknown as Json) : { issuer: url, jwks_uri: `${url}/keys` }
  return {
    openTokens: (parts: Pick<MachineTokensOptions, 'teams' | 'changed'>): MachineTokens => {
      const tokens = openMachineTokens({
        ...parts,
        now: Date.now,
        openKeys: ({ discoveryURL }, withdrawn) =>
          openIssuerKeys({
            url,
            discoveryURL,
            fetchJson,
            close: noop,
            now: Date.now,
            failed: noop,
            worked: noop,
            withdrawn,
          }),
        verified: noop,
        droppedGroups: noop,
      })
      tokens.use(issuers)
      return tokens
    },
    /** As long as those of GitHub Actions: about 1.5 KB. */
    tokens: (count: number): Promise<string[]> =>
      Promise.all(
        Array.from({ length: count }, (_, index) =>
          new SignJWT({ iss: url, aud: 'us', sub: `robot-${index}`, pad: 'x'.repeat(900) })
            .setProtectedHeader({ alg: 'ES256', kid: 'bench' })
            .setExpirationTime('1h')
            .sign(privateKey),
        ),
      ),
  }
}
