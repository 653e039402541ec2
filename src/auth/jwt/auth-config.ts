// Reads an auth.yaml: everything that is wrong with it at once, with line and column, and the compiled issuers.

import { type Finding, isDoubtful, problemsIn, validPart, withoutGaps } from '../../api/config-shape.ts'
import type { Schema } from '../../api/schema.ts'
import { type ConfigText, ConfigTextError, type Problem, readConfigText } from '../../api/yaml-source.ts'
import { checkAuthRules, isCertificate, type PartialConfig } from './auth-config-rules.ts'
import { authConfigSchema, type JwtEntry } from './auth-config-schema.ts'
import { compileMapping, type Mapping } from './claim-mapping.ts'

/** An entry of `jwt` that is ready to use. */
export type IssuerConfig = {
  readonly name: string
  readonly url: string
  readonly discoveryURL: string
  /** PEM; undefined: the CAs of the system. */
  readonly ca: string | undefined
  readonly audiences: readonly string[]
  readonly scope: JwtEntry['scope']
  readonly mapping: Mapping
}

export type LoadedAuthConfig = {
  readonly issuers: readonly IssuerConfig[]
  /** The files that the configuration names. */
  readonly files: readonly string[]
  readonly problems: readonly Problem[]
}

/** `readFile`: the content of a CA file, or why it is unreadable. */
export type ReadFile = (file: string) => { readonly text: string } | { readonly problem: string }

export function loadAuthConfig(bytes: Uint8Array, readFile: ReadFile): LoadedAuthConfig {
  let text: ConfigText
  try {
    text = readConfigText(bytes)
  } catch (error) {
    if (!(error instanceof ConfigTextError)) throw error
    return { issuers: [], files: [], problems: error.problems }
  }
  const findings: Finding[] = []
  const valid = validPart(text.value, { schema: authConfigSchema as Schema, at: [], findings })
  const partial = (valid ?? {}) as PartialConfig
  const more = checkAuthRules(partial)
  const files: string[] = []
  const readCa = (entry: JwtEntry, index: number): string | undefined => {
    const { certificateAuthority, certificateAuthorityFile: file } = entry.issuer ?? {}
    if (file === undefined) return certificateAuthority
    files.push(file)
    const content = readFile(file)
    const problem =
      'problem' in content
        ? content.problem
        : isCertificate(content.text)
          ? undefined
          : `${file} does not contain a PEM certificate`
    if (problem === undefined && 'text' in content) return content.text
    more.push({
      at: ['jwt', index, 'issuer', 'certificateAuthorityFile'],
      message: `jwt[${index}].issuer.certificateAuthorityFile: ${problem}`,
    })
    return undefined
  }
  const issuers = (partial.jwt ?? []).flatMap((entry, index): IssuerConfig[] => {
    if (!entry) return []
    const whole = withoutGaps(entry) as JwtEntry
    const { name = '', issuer = {}, scope } = whole
    const mapping = compileMapping(whole, ['jwt', index], more)
    const url = issuer.url ?? ''
    const discoveryURL = issuer.discoveryURL ?? `${url.replace(/\/$/, '')}/.well-known/openid-configuration`
    return [{ name, url, discoveryURL, ca: readCa(whole, index), audiences: issuer.audiences ?? [], scope, mapping }]
  })
  findings.push(...more.filter(one => !isDoubtful(findings, one)))
  return { issuers, files, problems: problemsIn(text, findings) }
}
