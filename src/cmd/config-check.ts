// `platform config check`: prints the effective settings, or all problems with them and the files they name.

import { X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import { stringify } from 'yaml'
import { readCertificate } from '../apiserver/certificate.ts'
import { keyRingIn } from '../apiserver/data-directory.ts'
import { etcdOf } from '../apiserver/etcd-settings.ts'
import { readSettings, type Settings, variableOf } from '../apiserver/settings.ts'
import { table } from '../apiserver/settings-table.ts'
import { UsageError } from '../host/command.ts'
import { policyOf } from '../serving/audit-log.ts'

export async function configCheck(args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const settings = await readSettings(args, env)
  await checkFiles(settings, env)
  const lines = Object.keys(table).map(
    key =>
      `# ${table[key as keyof typeof table].what} (${variableOf(key)})\n${key}: ${stringify(settings[key as keyof typeof table], { collectionStyle: 'flow' }).trim()}`,
  )
  console.log(['apiVersion: config.platform.sh/v1', 'kind: ServerConfig', ...lines].join('\n'))
}

/** Throws UsageError with all problems that `serve` would report. */
async function checkFiles(settings: Settings, env: NodeJS.ProcessEnv): Promise<void> {
  const file = settings['gateway.config']
  const checks = [
    policyOf(settings),
    checkCertificate(settings),
    checkKeyRing(settings, env),
    checkEtcd(settings),
    ...(file ? [checkGatewayConfig(file, env)] : []),
    ...(settings['auth.config'] ? [checkAuthConfig(settings['auth.config'], env)] : []),
  ]
  const problems = (await Promise.allSettled(checks)).flatMap(check => {
    if (check.status === 'fulfilled') return []
    if (check.reason instanceof UsageError) return check.reason.problems
    throw check.reason
  })
  if (problems.length) throw new UsageError(problems)
}

async function checkCertificate(settings: Settings): Promise<void> {
  const { https, tlsCert } = settings
  if (!tlsCert || https === 'off') return
  const { leaf, ca } = readCertificate(settings)
  const problems = [
    ...periodProblems(`tlsCert: ${tlsCert}`, leaf),
    ...(ca === undefined ? [] : periodProblems(`the CA of ${tlsCert}`, new X509Certificate(ca))),
  ]
  if (problems.length) throw new UsageError(problems)
}

async function checkEtcd(settings: Settings): Promise<void> {
  const cert = etcdOf(settings)?.tls?.cert
  const problems = cert ? periodProblems(`etcd.cert: ${settings['etcd.cert']}`, new X509Certificate(cert)) : []
  if (problems.length) throw new UsageError(problems)
}

function periodProblems(what: string, { validFromDate, validToDate }: X509Certificate): readonly string[] {
  if (validToDate.getTime() <= Date.now()) return [`${what} expired at ${validToDate.toISOString()}`]
  if (validFromDate.getTime() > Date.now()) return [`${what} is not valid before ${validFromDate.toISOString()}`]
  return []
}

/** The default file is not checked, because the first start creates it. */
async function checkKeyRing({ masterKey, data }: Settings, env: NodeJS.ProcessEnv): Promise<void> {
  if (!masterKey) return
  try {
    keyRingIn({ directory: resolve(data), setting: masterKey, env, mayMake: false })
  } catch (error) {
    throw new UsageError([(error as Error).message])
  }
}

async function checkGatewayConfig(file: string, env: NodeJS.ProcessEnv): Promise<void> {
  const { openSetupLoader } = await import('../gateway/config/load.ts')
  openSetupLoader(file, false, { env, now: Date.now }).load()
}

async function checkAuthConfig(file: string, env: NodeJS.ProcessEnv): Promise<void> {
  const { readAuthConfig } = await import('../apiserver/sign-in.ts')
  readAuthConfig(file, env)
}
