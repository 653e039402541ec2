// Reads a vcluster.yaml and its license, and reports problems with file, line and column.

import { allOf, type Flags, type Io, UsageError } from '../../host/command.ts'
import { type Config, loadConfig, type Problem } from './config.ts'
import { type License, LicenseError, licenseProblem, licenseWarning, patchesFeature, readLicense } from './license.ts'
import { readTrustedKeys } from './license-keys.ts'
import { parseKind, syncedKindProblems } from './reference-kinds.ts'

export const trustFlag = {
  'license-trust': {
    type: 'list',
    value: 'FILE',
    what: 'Public keys of license issuers to trust, from platform license keygen.',
    variable: 'PLATFORM_LICENSE_TRUST',
  },
} as const satisfies Flags

/** Flags of every command that reads a vcluster.yaml. */
export const configFlags = {
  file: { type: 'text', short: 'f', value: 'FILE', what: 'The vcluster.yaml.', required: true },
  license: { type: 'text', value: 'FILE', what: 'License for enterprise features.', variable: 'PLATFORM_LICENSE' },
  ...trustFlag,
} as const satisfies Flags

/** For commands that read the file without a syncer. */
export const syncReferencesFlag = {
  'sync-references': {
    type: 'list',
    value: 'KIND',
    what: 'A kind that vcluster sync gets with the same flag. Suppresses the warnings about it.',
    check: syncedKindProblems,
  },
} as const satisfies Flags

export type ConfigFiles = {
  readonly file: string
  readonly license: string | undefined
  readonly 'license-trust'?: readonly string[]
  /** Kinds that the syncer syncs in addition, so that there is no warning about them. */
  readonly 'sync-references'?: readonly string[]
}

/** Prints warnings to standard error. Throws UsageError with all problems. */
export async function readConfig(files: ConfigFiles, io: Io): Promise<Config> {
  const { file, license, 'license-trust': trust = [], 'sync-references': references = [] } = files
  const [verified, bytes] = await allOf([
    license ? readLicenseFile(license, trust, io) : undefined,
    io.readFile(file).catch((error: Error) => {
      throw new UsageError([error.message])
    }),
  ])
  const warning = verified && licenseWarning(verified, io.now())
  if (warning) io.err(`platform: ${license}: warning: ${warning}\n`)
  const unlicensed = licenseProblem(verified, patchesFeature, io.now())
  const { config, problems, warnings } = loadConfig(bytes, {
    noPatchesReason: unlicensed && `${unlicensed.code}: ${unlicensed.message}`,
    syncReferences: references.flatMap(text => parseKind(text) ?? []),
  })
  const shown = ({ line, column, message }: Problem, kind: string) => `${file}:${line}:${column}: ${kind}${message}`
  for (const one of warnings) io.err(`platform: ${shown(one, 'warning: ')}\n`)
  if (problems.length) throw new UsageError(problems.map(one => shown(one, '')))
  return config
}

/** `trust` names files with public keys. Throws UsageError. */
export async function readLicenseFile(file: string, trust: readonly string[], io: Io): Promise<License> {
  const [keys, bytes] = await allOf([
    readTrustedKeys(trust, io),
    io.readFile(file).catch((error: Error) => {
      throw new UsageError([error.message])
    }),
  ])
  try {
    return readLicense(bytes, keys)
  } catch (error) {
    if (!(error instanceof LicenseError)) throw error
    throw new UsageError([`${file} is not a valid license: ${error.code}: ${error.message}`])
  }
}
