// Creates the server's own CA and certificates. Our own DER writer, because libraries for X.509 have about twenty packages (docs/decisions/0005).

import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { isIP } from 'node:net'

export type Pair = { readonly certificate: string; readonly key: string }

const der = (tag: number, ...parts: readonly Buffer[]): Buffer => {
  const body = Buffer.concat(parts)
  const size =
    body.length < 0x80
      ? [body.length]
      : body.length < 0x100
        ? [0x81, body.length]
        : [0x82, body.length >> 8, body.length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), body])
}
const sequence = (...parts: readonly Buffer[]) => der(0x30, ...parts)
const integer = (bytes: Buffer) => der(0x02, (bytes[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes)
const boolean = der(0x01, Buffer.from([0xff]))
const octets = (body: Buffer) => der(0x04, body)
const bits = (body: Buffer, unused = 0) => der(0x03, Buffer.from([unused]), body)
const utf8 = (text: string) => der(0x0c, Buffer.from(text))
/** X.509 requires UTCTime before 2050, and GeneralizedTime from then on. */
const time = (milliseconds: number) => {
  const text = `${new Date(milliseconds).toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`
  return text < '2050' ? der(0x17, Buffer.from(text.slice(2))) : der(0x18, Buffer.from(text))
}
const oid = (text: string) => {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  const bytes = [first * 40 + second]
  for (const number of rest) {
    const groups = [number & 0x7f]
    for (let left = number >> 7; left; left >>= 7) groups.unshift((left & 0x7f) | 0x80)
    bytes.push(...groups)
  }
  return der(0x06, Buffer.from(bytes))
}

const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'))
const extension = (id: string, body: Buffer, critical = false) =>
  sequence(oid(id), ...(critical ? [boolean] : []), octets(body))
const named = (commonName: string) => sequence(der(0x31, sequence(oid('2.5.4.3'), utf8(commonName))))
const year = 365 * 24 * 3600 * 1000
const hour = 3600 * 1000

type Contents = {
  readonly issuer: Buffer
  readonly subject: Buffer
  readonly publicKey: KeyObject
  readonly extensions: readonly Buffer[]
  readonly from: number
  readonly until: number
}

function certificate(contents: Contents, signer: KeyObject): string {
  const serial = randomBytes(16)
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40 // positive, with full length
  const body = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    integer(serial),
    ecdsaWithSha256,
    contents.issuer,
    sequence(time(contents.from), time(contents.until)),
    contents.subject,
    contents.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...contents.extensions)),
  )
  const whole = sequence(body, ecdsaWithSha256, bits(sign('sha256', body, signer)))
  return `-----BEGIN CERTIFICATE-----\n${whole.toString('base64').replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`
}

const keyId = (key: KeyObject) =>
  createHash('sha1')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest()
const makeKeys = () => generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
const pem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString()

/** A CA that is valid for ten years and can sign only server certificates. */
export function makeAuthority(now: number): Pair {
  const { publicKey, privateKey } = makeKeys()
  const name = named(`platform CA ${randomBytes(4).toString('hex')}`)
  const extensions = [
    extension('2.5.29.19', sequence(boolean, integer(Buffer.from([0]))), true),
    extension('2.5.29.15', bits(Buffer.from([0x06]), 1), true), // keyCertSign, cRLSign
    extension('2.5.29.14', octets(keyId(publicKey))),
  ]
  const contents = { issuer: name, subject: name, publicKey, extensions, from: now - hour, until: now + 10 * year }
  return { certificate: certificate(contents, privateKey), key: pem(privateKey) }
}

/** A server certificate for the given names and addresses. Valid for a year, and never longer than its CA. */
export function issueCertificate(authority: Pair, names: readonly string[], now: number): Pair {
  const { publicKey, privateKey } = makeKeys()
  const parent = new X509Certificate(authority.certificate)
  const alternatives = names.map(name => (isIP(name) ? der(0x87, address(name)) : der(0x82, Buffer.from(name))))
  const extensions = [
    extension('2.5.29.19', sequence(), true),
    extension('2.5.29.15', bits(Buffer.from([0x80]), 7), true), // digitalSignature
    extension('2.5.29.37', sequence(oid('1.3.6.1.5.5.7.3.1'))), // serverAuth
    extension('2.5.29.17', sequence(...alternatives)),
    extension('2.5.29.35', sequence(der(0x80, keyId(parent.publicKey)))),
  ]
  const commonName = /CN=(.+)/.exec(parent.subject)?.[1] ?? ''
  const until = Math.min(now + year, Date.parse(parent.validTo))
  const contents = {
    issuer: named(commonName),
    subject: named('platform'),
    publicKey,
    extensions,
    from: now - hour,
    until,
  }
  return { certificate: certificate(contents, createPrivateKey(authority.key)), key: pem(privateKey) }
}

function address(ip: string): Buffer {
  if (isIP(ip) === 4) return Buffer.from(ip.split('.').map(Number))
  const [head = '', tail = ''] = ip.split('::')
  const groups = (text: string) => text.split(':').filter(Boolean)
  const missing = 8 - groups(head).length - groups(tail).length
  const all = ip.includes('::') ? [...groups(head), ...new Array(missing).fill('0'), ...groups(tail)] : groups(ip)
  return Buffer.from(all.flatMap(group => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]))
}

/** sha256:… of a certificate, in the form that people compare. */
export const fingerprint = (certificatePem: string) =>
  `sha256:${new X509Certificate(certificatePem).fingerprint256.replaceAll(':', '').toLowerCase()}`
