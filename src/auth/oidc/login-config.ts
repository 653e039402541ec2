// An entry of `login` in auth.yaml that is ready to use.

import type { LoginEntry } from '../jwt/auth-config-schema.ts'
import type { Tools } from '../jwt/claim-mapping.ts'
import { compileLoginMapping, type LoginMapping, type OtherPrefixes } from './login-mapping.ts'
import { type Lifetimes, lifetimesOf } from './login-rules.ts'

export type LoginConfig = {
  readonly name: string
  readonly displayName: string
  /** The URL of the issuer. */
  readonly url: string
  readonly discoveryURL: string
  /** PEM; undefined: the CAs of the system. */
  readonly ca: string | undefined
  readonly clientID: string
  /** A function, so that no log shows the secret. undefined: a public client. */
  readonly clientSecret: () => string | undefined
  /** undefined: the default, which depends on the provider. Otherwise with openid. */
  readonly scopes: readonly string[] | undefined
  readonly userInfo: boolean
  readonly prefixes: { readonly username: string; readonly groups: string }
  readonly lifetimes: Lifetimes
  readonly map: LoginMapping
}

export type CompileLoginOptions = Pick<LoginConfig, 'url' | 'discoveryURL' | 'ca' | 'clientSecret' | 'prefixes'> & {
  readonly tools: Tools
  readonly others: OtherPrefixes
}

/** With problems in `tools`, the result is not usable. */
export function compileLogin(entry: LoginEntry, { tools, others, ...read }: CompileLoginOptions): LoginConfig {
  const { name = '', displayName = name, clientID = '', scopes, userInfo = false } = entry
  return {
    ...read,
    name,
    displayName,
    clientID,
    scopes: scopes && [...new Set(['openid', ...scopes])],
    userInfo,
    lifetimes: lifetimesOf(entry),
    map: compileLoginMapping(entry, tools, others),
  }
}
