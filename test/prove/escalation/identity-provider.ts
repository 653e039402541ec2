// An identity provider for people and an issuer of machine tokens, over HTTP on loopback. The server talks to it as to a real one.
// It remembers its answers: the model takes the groups of people from them.

import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

export type Account = { groups: readonly string[]; isEnabled: boolean }

/** The answers to one sign-in and its refreshes. Times in milliseconds. */
export type Grant = {
  readonly subject: string
  groups: readonly string[]
  /** Of the last answer with groups. */
  answered: number
  /** The last request that failed because the provider was down. */
  failed: number
  /** The provider ended it. */
  hasEnded: boolean
}

export type IdentityProvider = {
  /** The issuers: of people, of machines with and without a scope, and of service accounts of a cluster. */
  readonly urls: { readonly corp: string; readonly ci: string; readonly bot: string; readonly kube: string }
  readonly accounts: { [subject: string]: Account }
  /** False: it answers 503. */
  isUp: boolean
  /** Whether a request, or a connection without one, is open. */
  isBusy(): boolean
  /** Signs a person in at the authorization endpoint. Returns the query of the callback, and the grant of the sign-in. */
  authorize(url: string, subject: string): { readonly query: string; readonly grant: Grant }
  /** A token of a machine. */
  issue(issuer: string, claims: { readonly [name: string]: unknown }): string
  /** A token of back-channel logout. */
  logoutToken(subject: string): string
  stop(): Promise<void>
}

export const clientID = 'platform'
export const audience = 'https://platform.test'
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout'

type Code = { readonly grant: Grant; readonly nonce: string; readonly challenge: string }

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const random = () => randomBytes(16).toString('base64url')

const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const jwk = { ...pair.publicKey.export({ format: 'jwk' }), kid: 'key', alg: 'ES256', use: 'sig' }

function signed(claims: object, typ: string): string {
  const text = `${base64({ alg: 'ES256', kid: 'key', typ })}.${base64(claims)}`
  const signature = sign('sha256', Buffer.from(text), { key: pair.privateKey, dsaEncoding: 'ieee-p1363' })
  return `${text}.${signature.toString('base64url')}`
}

export async function startIdentityProvider(now: () => number): Promise<IdentityProvider> {
  const codes = new Map<string, Code>()
  const refreshTokens = new Map<string, Grant>()
  const seconds = () => Math.floor(now() / 1000)

  let [unused, active] = [0, 0]
  const seen = new WeakSet<Socket>()
  const begin = (socket: Socket) => {
    if (seen.has(socket)) return
    seen.add(socket)
    unused--
  }
  const server = createServer((request, response) => {
    begin(request.socket)
    active++
    response.on('close', () => active--)
    void serve(request, response).catch(() => response.destroy())
  })
  server.on('connection', socket => {
    unused++
    socket.on('close', () => begin(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const provider: IdentityProvider = {
    urls: { corp: `${base}/corp`, ci: `${base}/ci`, bot: `${base}/bot`, kube: `${base}/kube` },
    accounts: {},
    isUp: true,
    isBusy: () => unused + active > 0,
    authorize(url, subject) {
      const { searchParams } = new URL(url)
      const grant = { subject, groups: [], answered: now(), failed: Number.NEGATIVE_INFINITY, hasEnded: false }
      const code = random()
      const [nonce, challenge] = [searchParams.get('nonce') ?? '', searchParams.get('code_challenge') ?? '']
      codes.set(code, { grant, nonce, challenge })
      return { query: `code=${code}&state=${searchParams.get('state')}`, grant }
    },
    issue: (iss, claims) => signed({ iss, aud: audience, iat: seconds(), exp: seconds() + 3600, ...claims }, 'JWT'),
    logoutToken(sub) {
      const base = { iss: provider.urls.corp, aud: clientID, iat: seconds(), exp: seconds() + 120, jti: random() }
      return signed({ ...base, sub, events: { [logoutEvent]: {} } }, 'logout+jwt')
    },
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, issuer = '', ...rest] = (request.url ?? '').split('/')
    const path = rest.join('/')
    const answer = (code: number, body: unknown) =>
      void response.writeHead(code, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    const url = `${base}/${issuer}`
    if (path === '.well-known/openid-configuration')
      return answer(200, {
        issuer: url,
        jwks_uri: `${url}/keys`,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        scopes_supported: ['openid', 'offline_access'],
      })
    if (path === 'keys') return answer(200, { keys: [jwk] })
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { code, body } = tokens(new URLSearchParams(Buffer.concat(chunks).toString()))
    answer(code, body)
  }

  /** The token endpoint. Refresh tokens rotate. */
  function tokens(form: URLSearchParams): { readonly code: number; readonly body: object } {
    const code = codes.get(form.get('code') ?? '')
    const old = form.get('refresh_token') ?? ''
    const grant = code?.grant ?? refreshTokens.get(old)
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (!grant || (code && code.challenge !== challenge)) return { code: 400, body: { error: 'invalid_grant' } }
    if (!provider.isUp) {
      grant.failed = now()
      return { code: 503, body: { error: 'temporarily_unavailable' } }
    }
    codes.delete(form.get('code') ?? '')
    refreshTokens.delete(old)
    const account = provider.accounts[grant.subject]
    if (grant.hasEnded || !account?.isEnabled) {
      grant.hasEnded = true
      return { code: 400, body: { error: 'invalid_grant' } }
    }
    Object.assign(grant, { groups: account.groups, answered: now() })
    const next = random()
    refreshTokens.set(next, grant)
    const claims = { sub: grant.subject, groups: account.groups, ...(code ? { nonce: code.nonce } : {}) }
    const times = { iat: seconds(), exp: seconds() + 300 }
    const idToken = signed({ iss: provider.urls.corp, aud: clientID, ...times, ...claims }, 'JWT')
    return {
      code: 200,
      body: { access_token: random(), token_type: 'Bearer', id_token: idToken, refresh_token: next },
    }
  }
  return provider
}
