// `platform config check`: prints the effective settings, or all problems with them and the files they name.

import { stringify } from 'yaml'
import { readSettings, type Settings, table, variableOf } from '../apiserver/settings.ts'
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
  const checks = [policyOf(settings), ...(file ? [checkGatewayConfig(file, env)] : [])]
  const problems = (await Promise.allSettled(checks)).flatMap(check => {
    if (check.status === 'fulfilled') return []
    if (check.reason instanceof UsageError) return check.reason.problems
    throw check.reason
  })
  if (problems.length) throw new UsageError(problems)
}

async function checkGatewayConfig(file: string, env: NodeJS.ProcessEnv): Promise<void> {
  const { openSetupLoader } = await import('../gateway/config/load.ts')
  openSetupLoader(file, false, { env, now: Date.now }).load()
}
