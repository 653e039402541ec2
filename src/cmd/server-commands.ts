// Commands that read the server settings: serve, config check, admin reset, audit hash and storage.

import { flagOf, table, variableOf } from '../apiserver/settings.ts'
import { type Command, defineCommand, type Flags } from '../host/command.ts'
import { io } from '../host/io.ts'

/** Settings as flags, only for the help. `readSettings` parses them together with variables and the file. */
const settings: Flags = {
  config: { type: 'text', value: 'FILE', what: 'File with settings.', variable: 'PLATFORM_CONFIG' },
  ...Object.fromEntries(
    Object.entries(table).map(([key, row]) => [
      flagOf(key),
      typeof row.default === 'boolean'
        ? { type: 'switch' as const, what: `${row.what} (or ${variableOf(key)})` }
        : {
            type: Array.isArray(row.default) ? ('list' as const) : ('text' as const),
            value: typeof row.default === 'number' ? 'N' : 'VALUE',
            what: row.what,
            variable: variableOf(key),
            ...(String(row.default) ? { default: String(row.default) } : {}),
          },
    ]),
  ),
}

type Run = (args: readonly string[], env: NodeJS.ProcessEnv) => Promise<void>

const withSettings = (words: string, what: string, load: () => Promise<Run>, example = ''): Command =>
  defineCommand({
    words: words.split(' '),
    what,
    examples: [{ what, command: `platform ${words}${example}` }],
    flags: settings,
    ownFlags: true,
    run: async ({ args }) => {
      await (await load())(args, io.env)
      return 0
    },
  })

export const serve = withSettings(
  'serve',
  'Run the management API.',
  async () => (await import('./serve.ts')).serve,
  ' --data data --https 0.0.0.0:8443',
)
export const configCheck = withSettings(
  'config check',
  'Validate and print the settings.',
  async () => (await import('./config-check.ts')).configCheck,
  ' --config platform.yaml',
)
export const adminReset = withSettings(
  'admin reset',
  'Create a new administrator key; the server must be stopped.',
  async () => (await import('./admin-reset.ts')).adminReset,
)
export const auditHash = withSettings(
  'audit hash',
  'Read a value from stdin and print the hash that the audit log shows for it.',
  async () => (await import('./audit-hash.ts')).auditHash,
  ' --data data < FILE',
)
export const storageStatus = withSettings(
  'storage status',
  'Show which keys encrypt the stored values.',
  async () => (await import('./storage.ts')).storageStatus,
  ' --data data',
)
export const storageRotateKey = withSettings(
  'storage rotate-key',
  'Re-encrypt everything with a new key. Works while the server runs.',
  async () => (await import('./storage.ts')).storageRotateKey,
  ' --data data',
)
