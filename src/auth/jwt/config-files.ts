// Reads the CA certificates and client secrets that an auth.yaml names, and reports why one is unusable.

import { type Finding, nameOf } from '../../api/config-shape.ts'
import type { At } from '../../api/yaml-source.ts'
import type { LoginEntry } from './auth-config-schema.ts'
import { isCertificate } from './issuer-rules.ts'

/** The content of a file, or why it is unreadable. */
export type ReadFile = (file: string) => { readonly text: string } | { readonly problem: string }

export type ConfigFilesOptions = {
  readonly readFile: ReadFile
  readonly env: { readonly [name: string]: string | undefined }
  readonly findings: Finding[]
}

type Check = (text: string) => string | undefined

export function openConfigFiles({ readFile, env, findings }: ConfigFilesOptions) {
  const names: string[] = []
  const report = (at: At, problem: string | undefined) => {
    if (problem !== undefined) findings.push({ at, message: `${nameOf(at)}: ${problem}` })
    return problem === undefined
  }
  const read = (file: string, at: At, check: Check): string | undefined => {
    names.push(file)
    const content = readFile(file)
    const problem = 'problem' in content ? content.problem : check(content.text)
    return report(at, problem) && 'text' in content ? content.text : undefined
  }
  return {
    /** The files that were read. */
    names: names as readonly string[],
    certificateOf(issuer: NonNullable<LoginEntry['issuer']>, at: At): string | undefined {
      const { certificateAuthority, certificateAuthorityFile: file } = issuer
      if (file === undefined) return certificateAuthority
      return read(file, [...at, 'certificateAuthorityFile'], text =>
        isCertificate(text) ? undefined : `${file} does not contain a PEM certificate`,
      )
    },
    clientSecretOf({ clientSecretFile: file, clientSecretEnv: variable }: LoginEntry, at: At): string | undefined {
      if (file !== undefined) return read(file, [...at, 'clientSecretFile'], text => secretProblem(file, text))?.trim()
      if (variable === undefined) return undefined
      const secret = env[variable]
      const problem = secret === undefined ? `${variable} is not set` : secretProblem(variable, secret)
      return report([...at, 'clientSecretEnv'], problem) ? secret?.trim() : undefined
    },
  }
}

/** Editors end a file with a newline, which is not part of the secret. */
function secretProblem(from: string, text: string): string | undefined {
  if (text.trim() === '') return `${from} is empty`
  return /[\x00-\x1f\x7f]/.test(text.trim()) ? `${from} contains control characters or several lines` : undefined
}
