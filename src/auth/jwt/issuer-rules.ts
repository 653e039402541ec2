// The rules of an issuer in auth.yaml: URLs, certificates, audiences.

import { X509Certificate } from 'node:crypto'
import { type Finding, nameOf } from '../../api/config-shape.ts'
import type { At } from '../../api/yaml-source.ts'
import type { JwtEntry } from './auth-config-schema.ts'

type Issuer = NonNullable<JwtEntry['issuer']>

export function checkIssuer(issuer: Issuer, at: At): Finding[] {
  const found: Finding[] = []
  const add = (field: string, message: string) =>
    found.push({ at: [...at, field], message: `${nameOf([...at, field])} ${message}` })
  const { url, discoveryURL, certificateAuthority, certificateAuthorityFile, audiences } = issuer
  for (const [field, value] of Object.entries({ url, discoveryURL }))
    if (value !== undefined) {
      const problem = urlProblem(value)
      if (problem) add(field, problem)
    }
  if (url !== undefined && url === discoveryURL) add('discoveryURL', 'must differ from url; remove it')
  if (certificateAuthority !== undefined && certificateAuthorityFile !== undefined)
    add('certificateAuthorityFile', 'cannot be combined with certificateAuthority; keep one of them')
  if (certificateAuthority !== undefined && !isCertificate(certificateAuthority))
    add('certificateAuthority', 'does not contain a PEM certificate')
  if (audiences?.length === 0) add('audiences', 'requires at least one audience')
  for (const [index, audience] of (audiences ?? []).entries()) {
    const path = [...at, 'audiences', index]
    if (audience === '') found.push({ at: path, message: `${nameOf(path)} requires a value` })
    else if (audience.startsWith('platform:'))
      found.push({
        at: path,
        message: `${nameOf(path)} must not start with platform:, which is for direct-cluster tokens; use the URL of this server`,
      })
  }
  return found
}

export function isCertificate(text: string): boolean {
  try {
    return Boolean(new X509Certificate(text).raw)
  } catch {
    return false
  }
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** Plain HTTP would let the network choose the keys. */
export function urlProblem(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (!url || /[\s#]/.test(value)) return 'must be an https URL without a fragment'
  if (url.username || url.password) return 'must not contain a username or password'
  if (url.protocol === 'https:' || (url.protocol === 'http:' && loopback.test(url.hostname))) return undefined
  return 'must be an https URL (http only for loopback addresses)'
}
