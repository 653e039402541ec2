// Reads an auth.yaml: everything that is wrong with it at once, with line and column, and the compiled entries.

import { hash } from 'node:crypto'
import { type Finding, isDoubtful, problemsIn, validPart, withoutGaps } from '../../api/config-shape.ts'
import type { Schema } from '../../api/schema.ts'
import { type ConfigText, ConfigTextError, type Problem, readConfigText } from '../../api/yaml-source.ts'
import { compileLogin, type LoginConfig } from '../oidc/login-config.ts'
import {
  checkAuthRules,
  groupPrefixOf,
  type PartialConfig,
  tokenLifetimeOf,
  usernamePrefixOf,
} from './auth-config-rules.ts'
import { authConfigSchema, type JwtEntry, type LoginEntry } from './auth-config-schema.ts'
import { compileMapping, type Mapping, mappingTools } from './claim-mapping.ts'
import { openConfigFiles, type ReadFile } from './config-files.ts'

/** An entry of `jwt` that is ready to use. */
export type IssuerConfig = {
  readonly name: string
  readonly url: string
  readonly discoveryURL: string
  /** PEM; undefined: the CAs of the system. */
  readonly ca: string | undefined
  readonly audiences: readonly string[]
  readonly scope: JwtEntry['scope']
  /** The agent of the connected cluster that has this issuer. */
  readonly agent: JwtEntry['agent']
  /** Seconds. */
  readonly maxTokenLifetime: number
  /** Changes with the rules, the mapping and the scope. */
  readonly stamp: string
  readonly mapping: Mapping
  readonly prefixes: LoginConfig['prefixes']
}

export type LoadedAuthConfig = {
  readonly issuers: readonly IssuerConfig[]
  readonly logins: readonly LoginConfig[]
  /** The files that the configuration names. */
  readonly files: readonly string[]
  readonly problems: readonly Problem[]
}

type Env = { readonly [name: string]: string | undefined }

export function loadAuthConfig(bytes: Uint8Array, readFile: ReadFile, env: Env = {}): LoadedAuthConfig {
  let text: ConfigText
  try {
    text = readConfigText(bytes)
  } catch (error) {
    if (!(error instanceof ConfigTextError)) throw error
    return { issuers: [], logins: [], files: [], problems: error.problems }
  }
  const findings: Finding[] = []
  const valid = validPart(text.value, { schema: authConfigSchema as Schema, at: [], findings })
  const partial = (valid ?? {}) as PartialConfig
  const more = checkAuthRules(partial)
  const files = openConfigFiles({ readFile, env, findings: more })
  const entries = {
    login: (partial.login ?? []).map(entry => entry && (withoutGaps(entry) as LoginEntry)),
    jwt: (partial.jwt ?? []).map(entry => entry && (withoutGaps(entry) as JwtEntry)),
  }
  const issuers = entries.jwt.flatMap((entry, index): IssuerConfig[] => {
    if (!entry) return []
    const at = ['jwt', index]
    const { name = '', issuer = {}, scope, agent } = entry
    const mapping = compileMapping(entry, mappingTools(at, more))
    const ca = files.certificateOf(issuer, [...at, 'issuer'])
    const [audiences, maxTokenLifetime] = [issuer.audiences ?? [], tokenLifetimeOf(entry)]
    const prefixes = { username: usernamePrefixOf(entry), groups: groupPrefixOf(entry) }
    const rest = { scope, agent, mapping, prefixes, maxTokenLifetime, stamp: stampOf(entry) }
    return [{ name, ...addressOf(issuer), ca, audiences, ...rest }]
  })
  const logins = entries.login.flatMap((entry, index): LoginConfig[] => {
    if (!entry) return []
    const at = ['login', index]
    const secret = files.clientSecretOf(entry, at)
    const others = [...entries.login, ...entries.jwt].flatMap(one => (one && one !== entry ? [one] : []))
    return [
      compileLogin(entry, {
        ...addressOf(entry.issuer ?? {}),
        ca: files.certificateOf(entry.issuer ?? {}, [...at, 'issuer']),
        clientSecret: () => secret,
        prefixes: { username: usernamePrefixOf(entry), groups: groupPrefixOf(entry) },
        tools: mappingTools(at, more),
        others: { username: others.map(usernamePrefixOf), groups: others.map(groupPrefixOf) },
      }),
    ]
  })
  findings.push(...more.filter(one => !isDoubtful(findings, one)))
  return { issuers, logins, files: files.names, problems: problemsIn(text, findings) }
}

function stampOf({ claimValidationRules, claimMappings, userValidationRules, scope, agent }: JwtEntry): string {
  // Without an agent the stamp is that of earlier versions.
  const text = JSON.stringify([
    claimValidationRules,
    claimMappings,
    userValidationRules,
    scope,
    ...(agent ? [agent] : []),
  ])
  return hash('sha256', text, 'hex').slice(0, 32)
}

function addressOf({ url = '', discoveryURL }: NonNullable<LoginEntry['issuer']>) {
  return { url, discoveryURL: discoveryURL ?? `${url.replace(/\/$/, '')}/.well-known/openid-configuration` }
}
