// Reads a vcluster.yaml and its license, and reports problems with file, line and column.

import { allOf, type Flags, type Io, UsageError } from '../../host/command.ts'
import { type Config, loadConfig, type Problem } from './config.ts'
import {
  type License,
  LicenseError,
  licenseProblem,
  licenseWarning,
  type PublicKeys,
  patchesFeature,
  readLicense,
} from './license.ts'

/** Flags of every command that reads a vcluster.yaml. */
export const configFlags = {
  file: { type: 'text', short: 'f', value: 'FILE', what: 'The vcluster.yaml.', required: true },
  license: { type: 'text', value: 'FILE', what: 'License for enterprise features.', variable: 'PLATFORM_LICENSE' },
} as const satisfies Flags

export type ConfigFiles = { readonly file: string; readonly license: string | undefined }

/** Prints warnings to standard error. Throws UsageError with all problems. */
export async function readConfig({ file, license }: ConfigFiles, io: Io, keys?: PublicKeys): Promise<Config> {
  const [verified, bytes] = await allOf([
    license ? readLicenseFile(license, io, keys) : undefined,
    io.readFile(file).catch((error: Error) => {
      throw new UsageError([error.message])
    }),
  ])
  const warning = verified && licenseWarning(verified, io.now())
  if (warning) io.err(`platform: ${license}: warning: ${warning}\n`)
  const { config, problems, warnings } = loadConfig(bytes, {
    noPatchesReason: licenseProblem(verified, patchesFeature, io.now()),
  })
  const shown = ({ line, column, message }: Problem, kind: string) => `${file}:${line}:${column}: ${kind}${message}`
  for (const one of warnings) io.err(`platform: ${shown(one, 'warning: ')}\n`)
  if (problems.length) throw new UsageError(problems.map(one => shown(one, '')))
  return config
}

/** Throws UsageError. */
export async function readLicenseFile(file: string, io: Io, keys?: PublicKeys): Promise<License> {
  try {
    return readLicense(await io.readFile(file), keys)
  } catch (error) {
    if (error instanceof LicenseError) throw new UsageError([`${file} is not a valid license: ${error.message}`])
    throw new UsageError([(error as Error).message])
  }
}
