// Checks all files of a gateway, and for `platform gateway --check` also the issuer, the management API and the clusters.

import { readFileSync } from 'node:fs'
import type { Logger } from 'pino'
import { type Io, UsageError } from '../../host/command.ts'
import { policyIn } from '../../serving/audit-log.ts'
import { auditSettingsOf, checkAuditLog } from '../audit.ts'
import { checkServiceFiles, openService } from '../auth/control-plane.ts'
import { pairOf } from '../certificates.ts'
import { loadGatewayConfig } from './config.ts'
import { type LoadedSetup, openSetupLoader } from './load.ts'
import { askClusters, askIssuer, askService, type Told, type Ways } from './preflight-probes.ts'
import type { GatewayConfig } from './schema.ts'

/** Answers the exit code: 0, or 1 where only somebody cannot be reached. Throws UsageError with everything that is wrong. */
export async function checkGateway(file: string, io: Io): Promise<number> {
  const { problems, setup } = await lookAtFiles(file, io)
  const told: Told = { problems: [...problems], warnings: [], away: [] }
  if (setup && problems.length === 0) await askAround(setup, { file, io }, told)
  for (const text of new Set(told.warnings)) io.err(`warning: ${text}\n`)
  if (told.problems.length) throw new UsageError([...new Set([...told.problems, ...told.away])])
  for (const text of new Set(told.away)) io.err(`${text}\n`)
  return told.away.length ? 1 : 0
}

/** The results of the network checks. */
async function askAround({ config, accesses }: LoadedSetup, { file, io }: Ways, told: Told): Promise<void> {
  const service = openService(config, file, io)
  await Promise.all([
    askIssuer(service, { config, file }, told),
    askService(service, { config, file }, told),
    askClusters(accesses, { file, io }, told),
  ])
  service.close()
}

/** Logs the results of `--check` at startup: otherwise clients would see most problems first. */
export async function logPreflight(file: string, io: Io, log: Pick<Logger, 'warn' | 'error'>): Promise<void> {
  const told: Told = { problems: [], warnings: [], away: [] }
  try {
    await askAround(openSetupLoader(file, true, io).load(), { file, io }, told)
  } catch (error) {
    told.warnings.push((error as Error).message)
  }
  for (const text of new Set(told.problems)) log.error(text)
  for (const text of new Set([...told.away, ...told.warnings])) log.warn(text)
}

/** Rejects with UsageError, all of it: what the file says, whatever of it is of the right shape, and the files it names. */
export async function checkFiles(file: string, io: Io): Promise<void> {
  const { problems } = await lookAtFiles(file, io)
  if (problems.length) throw new UsageError(problems)
}

type Looked = { readonly problems: readonly string[]; readonly setup: LoadedSetup | undefined }

async function lookAtFiles(file: string, io: Io): Promise<Looked> {
  const problems: string[] = []
  const attempt = async <T>(work: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      problems.push(...error.problems)
      return undefined
    }
  }
  const setup = await attempt(() => openSetupLoader(file, true, io).load())
  const config = setup?.config ?? configIn(file)
  const { certificate, key, directory } = config.tls ?? {}
  problems.push(...checkServiceFiles(config, file), ...checkAuditLog(config, file))
  await attempt(() => policyIn(auditSettingsOf(config, file)['audit.policy']))
  if ((certificate && key) || directory) await attempt(() => pairOf(config, file))
  return { problems: [...new Set(problems)], setup }
}

/** The readable part; problems were reported already. */
function configIn(file: string): GatewayConfig {
  try {
    return loadGatewayConfig(readFileSync(file), true).config
  } catch {
    return {}
  }
}
