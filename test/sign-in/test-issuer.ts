// An OpenID Connect issuer for tests: real keys, real tokens, over HTTPS, with faults that a test switches on.

import { once } from 'node:events'
import { createServer, type Server as HttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'

const issuerAuthority = makeAuthority(Date.now())
export const audience = 'https://platform.example.org'

export type Claims = { readonly [name: string]: unknown }
export type Signing = { readonly header?: Claims; readonly kid?: string; readonly key?: CryptoKey | Uint8Array }

export type TestIssuer = {
  readonly url: string
  readonly ca: string
  /** Requests since the start. */
  readonly fetches: { discovery: number; keys: number }
  /** Signs a token that is valid for ten minutes, unless the claims say otherwise. An undefined claim is left out. */
  sign(claims?: Claims, signing?: Signing): Promise<string>
  /** Publishes a new key that signs from now on. `keep`: the earlier keys stay published. */
  rotate(keep?: boolean): Promise<void>
  /** A response in place of its documents; undefined: the documents. */
  answer: { status?: number; discovery?: Claims; keys?: string } | undefined
  /** Requests wait until `release`. `held`: how many wait. */
  hold(): void
  held(): number
  release(): void
  stop(): Promise<void>
  /** Listens again on the same port. */
  start(): Promise<void>
}

export const seconds = () => Math.floor(Date.now() / 1000)

export async function startIssuer(algorithm = 'ES256'): Promise<TestIssuer> {
  const pair = issueCertificate(issuerAuthority, ['localhost', '127.0.0.1'], Date.now())
  const fetches = { discovery: 0, keys: 0 }
  let published: JWK[] = []
  let current: { readonly kid: string; readonly key: CryptoKey }
  let [port, rotations] = [0, 0]
  let server: HttpsServer
  const sockets = new Set<Duplex>()
  let waiting: (() => void)[] | undefined
  const rotate = async (keep = false) => {
    const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true })
    const kid = `key-${++rotations}`
    published = [...(keep ? published : []), { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' }]
    current = { kid, key: privateKey }
  }
  const start = async () => {
    server = createServer({ cert: pair.certificate, key: pair.key }, (request, response) => {
      const isKeys = request.url === '/keys'
      fetches[isKeys ? 'keys' : 'discovery']++
      const answer = () => {
        const { status = 200, discovery, keys } = issuer.answer ?? {}
        response.writeHead(status, { 'Content-Type': 'application/json' })
        response.end(
          isKeys
            ? (keys ?? JSON.stringify({ keys: published }))
            : JSON.stringify(discovery ?? { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` }),
        )
      }
      if (waiting) waiting.push(answer)
      else answer()
    })
    server.on('connection', socket => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  }
  await rotate()
  await start()
  const issuer: TestIssuer = {
    url: `https://127.0.0.1:${port}`,
    ca: issuerAuthority.certificate,
    fetches,
    answer: undefined,
    hold() {
      waiting = []
    },
    held: () => waiting?.length ?? 0,
    release() {
      const held = waiting ?? []
      waiting = undefined
      for (const answer of held) answer()
    },
    rotate,
    start,
    sign: (claims = {}, { header = {}, kid = current.kid, key = current.key } = {}) => {
      const all = {
        iss: issuer.url,
        aud: audience,
        sub: 'robot',
        iat: seconds(),
        exp: seconds() + 600,
        ...claims,
      }
      const present = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
      return new SignJWT(present).setProtectedHeader({ alg: algorithm, kid, ...header } as { alg: string }).sign(key)
    },
    async stop() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
  return issuer
}
