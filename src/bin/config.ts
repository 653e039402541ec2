// `platform config check`: says what the settings would be, or everything that is wrong with them.

import { stringify } from 'yaml'
import { readSettings, table, variableOf } from './settings.ts'

export async function configCheck(args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const settings = await readSettings(args, env)
  const lines = Object.keys(table).map(
    key =>
      `# ${table[key as keyof typeof table].what} (${variableOf(key)})\n${key}: ${stringify(settings[key as keyof typeof table], { collectionStyle: 'flow' }).trim()}`,
  )
  console.log(['apiVersion: config.platform.sh/v1', 'kind: ServerConfig', ...lines].join('\n'))
}
