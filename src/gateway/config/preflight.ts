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
import { probeAgent } from './preflight-agent.ts'
import {
  type PreflightReport,
  type ProbeOptions,
  probeClusters,
  probeIssuer,
  probeService,
} from './preflight-probes.ts'
import type { GatewayConfig } from './schema.ts'

/** Returns the exit code: 0, or 1 if a target is unreachable. Throws UsageError with all other problems. */
export async function checkGateway(file: string, io: Io): Promise<number> {
  const { problems, setup } = await readFiles(file, io)
  const report: PreflightReport = { problems: [...problems], warnings: [], unreachable: [] }
  if (setup && problems.length === 0) await probeAll(setup, { file, io }, report)
  for (const text of new Set(report.warnings)) io.err(`warning: ${text}\n`)
  if (report.problems.length) throw new UsageError([...new Set([...report.problems, ...report.unreachable])])
  for (const text of new Set(report.unreachable)) io.err(`${text}\n`)
  return report.unreachable.length ? 1 : 0
}

/** The results of the network checks. */
async function probeAll(setup: LoadedSetup, { file, io }: ProbeOptions, report: PreflightReport): Promise<void> {
  const { config, accesses } = setup
  const service = openService(config, file, io)
  await Promise.all([
    probeIssuer(service, { config, file }, report),
    probeService(service, { config, file }, report),
    probeClusters(accesses, { file, io }, report),
    probeAgent(setup, service, { file, io }, report),
  ])
  service.close()
}

/** Logs the results of `--check` at startup: otherwise clients would see most problems first. */
export async function logPreflight(file: string, io: Io, log: Pick<Logger, 'warn' | 'error'>): Promise<void> {
  const report: PreflightReport = { problems: [], warnings: [], unreachable: [] }
  try {
    await probeAll(openSetupLoader(file, true, io).load(), { file, io }, report)
  } catch (error) {
    report.warnings.push((error as Error).message)
  }
  for (const text of new Set(report.problems)) log.error(text)
  for (const text of new Set([...report.unreachable, ...report.warnings])) log.warn(text)
}

/** Rejects with UsageError with all problems of the file and of the files it names. Checks every part that has the right shape. */
export async function checkFiles(file: string, io: Io): Promise<void> {
  const { problems } = await readFiles(file, io)
  if (problems.length) throw new UsageError(problems)
}

type FileCheck = { readonly problems: readonly string[]; readonly setup: LoadedSetup | undefined }

async function readFiles(file: string, io: Io): Promise<FileCheck> {
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

/** The readable part. Its problems were reported before. */
function configIn(file: string): GatewayConfig {
  try {
    return loadGatewayConfig(readFileSync(file), true).config
  } catch {
    return {}
  }
}
