// An OpenID Connect provider for tests of sign-in, over HTTP on loopback: oidc-provider with accounts and faults that tests change.
//
// - `startProvider({ redirectUris })` starts it. `configure({ redirectUris, … })` changes the client when the port of the server is known.
// - `loginOf(provider)` is its entry of login[] in auth.yaml. CORP_SECRET must contain `provider.secret`.
// - `provider.accounts['ada'] = { groups: ['dev'] }` adds an account, or changes it at any time. `disabled: true` ends refreshes.
// - `signInAt(url, 'ada')` of sign-in-at.ts follows redirects like a browser, and returns the URL of the callback.
//   A real browser works too: the page has one field `account` and a button.
// - `provider.faults = { status: 503 }` and others make it fail. `stop()` closes the listener; `start()` opens it on the same port.
// - `rotateKeys()` replaces the signing keys. Sessions and refresh tokens stay valid.
// - `logoutToken({ sub: 'ada' })` signs a logout token. `logOut('ada')` sends one to backchannelLogoutUri.
//
// The clients are `platform` with the secret, and `public` without one. Both need PKCE. Refresh tokens rotate, and a reused one revokes
// its grant.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { type CryptoKey, decodeJwt, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
// @ts-expect-error: the package has no types
import Oidc from 'oidc-provider'
import {
  type Account,
  algorithm,
  type Claims,
  type ClientOptions,
  configurationOf,
} from './test-provider-configuration.ts'
import { openProviderStore } from './test-provider-store.ts'

export type Faults = {
  /** The status of every response. */
  status?: number
  /** Only for paths that contain this text, such as /token. Default: all. */
  only?: string
  /** Requests wait until this is false. */
  hold?: boolean
  /** Responses never end: they send a blank every few milliseconds. */
  drip?: boolean
  /** The next responses of the token endpoint are lost after the provider processed the request. */
  loseTokens?: number
  /** Seconds in which a used refresh token is accepted again. */
  reuseLeeway?: number
  /** Changes ID tokens: claims, header, key. An undefined claim is left out. `algorithm: 'none'` and HS256 are possible. */
  tokens?: TokenFault
  /** Changes the JSON of the token endpoint. An undefined field is left out. */
  response?: Claims
  /** A raw body of the token endpoint. */
  body?: string
  /** Changes the discovery document. */
  discovery?: Claims
}

export type TokenFault = {
  readonly claims?: Claims
  readonly header?: Claims
  readonly algorithm?: 'none' | 'HS256'
  /** Signs with a key that is not published. */
  readonly foreignKey?: boolean
}

export type TestProvider = {
  readonly url: string
  readonly clientID: 'platform'
  readonly secret: string
  readonly accounts: { [name: string]: Account }
  faults: Faults
  /** Requests by path, since the start. */
  readonly requests: { readonly [path: string]: number }
  /** The `sid` of sessions by account, from issued ID tokens. */
  readonly sessions: { readonly [account: string]: readonly string[] }
  configure(client: ClientOptions): Promise<void>
  rotateKeys(): Promise<void>
  logoutToken(claims: Claims, fault?: TokenFault): Promise<string>
  /** Sends a logout token to backchannelLogoutUri. Returns the status of the response. */
  logOut(account: string): Promise<number>
  stop(): Promise<void>
  start(): Promise<void>
}

const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout'

export const loginOf = (provider: TestProvider, over: object = {}) => ({
  name: 'corp',
  issuer: { url: provider.url },
  clientID: provider.clientID,
  clientSecretEnv: 'CORP_SECRET',
  claimMappings: { username: { claim: 'sub' }, groups: { claim: 'groups' } },
  ...over,
})

export async function startProvider(client: ClientOptions = {}): Promise<TestProvider> {
  const accounts: { [name: string]: Account } = Object.create(null)
  const sessions: { [account: string]: string[] } = Object.create(null)
  const requests: { [path: string]: number } = {}
  const Adapter = openProviderStore(() => provider.faults.reuseLeeway ?? -1)
  const secret = 'a secret of the test client, with a % and a +'
  const sockets = new Set<Socket>()
  let [port, rotations] = [0, 0]
  let options = client
  let signing: { readonly jwk: JWK; readonly key: CryptoKey }
  const foreign = await generateKeyPair(algorithm)
  let handle: (request: IncomingMessage, response: ServerResponse) => void
  // biome-ignore lint/suspicious/noExplicitAny: the package has no types
  let oidc: any
  let server: Server

  const newKey = async () => {
    const { privateKey } = await generateKeyPair(algorithm, { extractable: true })
    const jwk = { ...(await exportJWK(privateKey)), kid: `key-${++rotations}`, alg: algorithm, use: 'sig' }
    signing = { jwk, key: privateKey }
  }

  const build = () => {
    oidc = new Oidc(provider.url, configurationOf({ accounts, options, secret, jwk: signing.jwk, Adapter }))
    handle = oidc.callback()
  }

  /** Signs a token as the provider does, with the fault. */
  async function sign(claims: Claims, typ: string, fault: TokenFault = {}): Promise<string> {
    const all = Object.fromEntries(
      Object.entries({ ...claims, ...fault.claims }).filter(([, value]) => value !== undefined),
    )
    const header = { alg: fault.algorithm ?? algorithm, kid: signing.jwk.kid, typ, ...fault.header }
    if (fault.algorithm === 'none')
      return `${[header, all].map(part => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.`
    const key = fault.algorithm ? new TextEncoder().encode(secret) : fault.foreignKey ? foreign.privateKey : signing.key
    return new SignJWT(all).setProtectedHeader(header as { alg: string }).sign(key)
  }

  /** The response of the token endpoint after the faults; undefined: it is lost. */
  async function tokenBody(text: string): Promise<string | undefined> {
    const { faults } = provider
    if (faults.loseTokens) {
      faults.loseTokens--
      return undefined
    }
    const body = JSON.parse(text) as { id_token?: string }
    if (body.id_token) {
      const claims = decodeJwt(body.id_token)
      const { sub = '', sid } = claims
      if (typeof sid === 'string') sessions[sub] = [...new Set([...(sessions[sub] ?? []), sid])]
      if (faults.tokens) body.id_token = await sign(claims, 'JWT', faults.tokens)
    }
    return faults.body ?? JSON.stringify({ ...body, ...faults.response })
  }

  const rewrite = (response: ServerResponse, change: (text: string) => Promise<string | undefined>) => {
    const end = response.end.bind(response)
    response.end = ((chunk?: string | Buffer) => {
      void change(String(chunk ?? '')).then(
        text => {
          if (text === undefined) return response.destroy()
          if (!response.headersSent) response.removeHeader('Content-Length')
          return end(text)
        },
        // The client closed the connection, so there is no body.
        () => response.destroy(),
      )
      return response
    }) as ServerResponse['end']
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? '', provider.url).pathname
    requests[path] = (requests[path] ?? 0) + 1
    const { faults } = provider
    const isAffected = path.includes(faults.only ?? '')
    while (provider.faults.hold && isAffected && !response.destroyed) await setTimeout(5)
    if (faults.drip && isAffected) return drip(response)
    if (faults.status !== undefined && isAffected)
      return void response.writeHead(faults.status, { 'Content-Type': 'text/plain' }).end('fault')
    if (path.startsWith('/interaction/')) return interact(request, response)
    if (path === '/token')
      rewrite(response, text => (response.statusCode === 200 ? tokenBody(text) : Promise.resolve(text)))
    if (path.startsWith('/.well-known/') && faults.discovery)
      rewrite(response, async text => JSON.stringify({ ...JSON.parse(text), ...faults.discovery }))
    handle(request, response)
  }

  /** The sign-in page, and what it sends. */
  async function interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') {
      const page = `<!doctype html><title>Test provider</title><h1>Test provider</h1><form method="post"><label>Account: <input name="account" required autofocus></label> <button>Sign in</button></form>`
      return void response.writeHead(200, { 'Content-Type': 'text/html' }).end(page)
    }
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const accountId = new URLSearchParams(Buffer.concat(chunks).toString()).get('account') ?? ''
    const account = accounts[accountId]
    const result =
      account && !account.disabled
        ? { login: { accountId } }
        : { error: 'access_denied', error_description: 'unknown or disabled account' }
    await oidc.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
  }

  const provider: TestProvider = {
    url: '',
    clientID: 'platform',
    secret,
    accounts,
    faults: {},
    requests,
    sessions,
    async configure(next) {
      options = { ...options, ...next }
      build()
    },
    async rotateKeys() {
      await newKey()
      build()
    },
    logoutToken: (claims, fault) => {
      const iat = Math.floor(Date.now() / 1000)
      const base = { iss: provider.url, aud: provider.clientID, iat, exp: iat + 120, jti: `logout-${Math.random()}` }
      return sign({ ...base, events: { [logoutEvent]: {} }, ...claims }, 'logout+jwt', fault)
    },
    async logOut(account) {
      const sid = sessions[account]?.at(-1)
      const body = new URLSearchParams({
        logout_token: await provider.logoutToken({ sub: account, ...(sid ? { sid } : {}) }),
      })
      const { status } = await fetch(options.backchannelLogoutUri ?? '', { method: 'POST', body })
      return status
    },
    async start() {
      server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()))
      server.on('connection', socket => {
        sockets.add(socket)
        socket.on('close', () => sockets.delete(socket))
      })
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
      port = (server.address() as AddressInfo).port
    },
    async stop() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
  await provider.start()
  Object.assign(provider, { url: `http://127.0.0.1:${port}` })
  await provider.rotateKeys()
  return provider
}

function drip(response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'application/json' })
  const timer = setInterval(() => response.write(' '), 5)
  response.on('close', () => clearInterval(timer))
}
