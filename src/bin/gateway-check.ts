// `platform gateway --check`: everything that is wrong with the files at once, and what the service says to the key that is in them.

import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ApiError } from '../api/errors.ts'
import { type Io, UsageError } from '../cli/command.ts'
import { isAboutCertificates } from '../gateway/backend.ts'
import { loadGatewayConfig } from '../gateway/config.ts'
import type { GatewayConfig } from '../gateway/config-schema.ts'
import { TokenReview } from '../kinds/reviews-of-others.ts'
import { TokenRevocation } from '../kinds/token-revocation.ts'
import { policyIn } from './audit-log.ts'
import { auditOf, certificatesOf } from './gateway-files.ts'
import { openService, type Service } from './gateway-service.ts'
import { openSetupLoader } from './gateway-setup.ts'

type Found = { readonly problems: string[]; readonly warnings: string[] }

/** Throws UsageError with everything that is wrong. Who cannot be reached now may be later: that is a warning. */
export async function checkGateway(file: string, io: Io): Promise<void> {
  const found: Found = { problems: [], warnings: [] }
  const attempt = <T>(work: () => T): T | undefined => {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      found.problems.push(...error.problems)
      return undefined
    }
  }
  attempt(() => openSetupLoader(file, true, io).load())
  const config = attempt(() => configIn(file))
  if (config) {
    attempt(() => policyIn(auditOf(config, file).settings['audit.policy']))
    if (!config.tls?.directory) attempt(() => certificatesOf(config, file, { now: io.now, failed: () => {} }).stop())
    const service = attempt(() => openService(config, file, io))
    if (service) await askService(service, config, file, found)
    service?.close()
  }
  for (const text of found.warnings) io.err(`warning: ${text}\n`)
  if (found.problems.length) throw new UsageError([...new Set(found.problems)])
}

/** What stands in it, where its own words can be read; what is wrong with those was told already. */
function configIn(file: string): GatewayConfig | undefined {
  try {
    const { config, problems } = loadGatewayConfig(readFileSync(file), true)
    return problems.length ? undefined : config
  } catch {
    return undefined
  }
}

async function askService(service: Service, config: GatewayConfig, file: string, found: Found): Promise<void> {
  const keyFile = resolve(dirname(file), config.service?.keyFile ?? '')
  const key = readFileSync(keyFile, 'utf8').trim()
  const told =
    (what: string, where: string) => (error: Error & { readonly code?: unknown; readonly cause?: unknown }) => {
      const isAway = !(error instanceof ApiError) || error.code >= 500 || error.code === 429
      const isMistrust = isAboutCertificates(String((error.cause as { code?: string } | undefined)?.code ?? ''))
      if (isAway) (isMistrust ? found.problems : found.warnings).push(`${file}: ${what}: ${error.message}`)
      else if (error.code === 401)
        found.problems.push(
          `${file}: ${where}: the service does not take the access key in ${keyFile}: ${error.message}`,
        )
      else
        found.problems.push(
          `${file}: ${where}: the key in ${keyFile} may not do what a gateway does (it needs the scope role agent): ${error.message}`,
        )
    }
  await service.fetchKeys().catch(told('issuer', 'issuer.keySet'))
  const isFollowed = await service.resources
    .list(TokenRevocation, { limit: 1 })
    .then(() => true)
    .catch(told('service', 'service.keyFile'))
  if (isFollowed)
    await service.resources.create(TokenReview, '', { spec: { token: key } }).catch(told('service', 'service.keyFile'))
}
