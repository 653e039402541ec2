// Commands that read the server settings: serve, config check, admin reset, audit hash and storage.

import { flagOf, variableOf } from '../apiserver/settings.ts'
import { table } from '../apiserver/settings-table.ts'
import { type Command, defineCommand, type Flag, type Flags } from '../host/command.ts'
import { io } from '../host/io.ts'

type Key = keyof typeof table

/** Settings as flags, only for the help. `readSettings` parses them together with variables and the file. */
const flagsFor = (keys: readonly Key[]): Flags => ({
  config: { type: 'text', value: 'FILE', what: 'File with settings.', variable: 'PLATFORM_CONFIG' },
  ...Object.fromEntries(keys.map(key => [flagOf(key), flagFor(key, table[key])])),
})

function flagFor(key: Key, row: (typeof table)[Key]): Flag {
  if (typeof row.default === 'boolean') return { type: 'switch', what: `${row.what} (or ${variableOf(key)})` }
  return {
    type: Array.isArray(row.default) ? 'list' : 'text',
    value: typeof row.default === 'number' ? 'N' : 'VALUE',
    what: row.what,
    variable: variableOf(key),
    ...(String(row.default) ? { default: String(row.default) } : {}),
  }
}

const all = Object.keys(table) as Key[]
const stored = ['data', 'masterKey'] as const
const ofEtcd = [
  'storage',
  'etcd.endpoints',
  'etcd.ca',
  'etcd.cert',
  'etcd.key',
  'etcd.prefix',
  'etcd.allowUnsafeVersion',
] as const
const audited = ['audit.log', 'audit.policy', 'audit.maxSize', 'audit.maxFiles', 'audit.maxAge'] as const

type Run = (args: readonly string[], env: NodeJS.ProcessEnv) => Promise<void>

type SettingsCommand = {
  readonly words: string
  readonly what: string
  readonly example: string
  /** The settings that the command uses. It accepts and ignores the others, so that it can share a file with the server. */
  readonly uses: readonly Key[]
  readonly load: () => Promise<Run>
}

const withSettings = ({ words, what, example, uses, load }: SettingsCommand): Command =>
  defineCommand({
    words: words.split(' '),
    what,
    examples: [{ command: `platform ${words}${example}` }],
    flags: flagsFor(uses),
    ownFlags: true,
    run: async ({ args }) => {
      await (await load())(args, io.env)
      return 0
    },
  })

export const serve = withSettings({
  words: 'serve',
  what: 'Run the management API.',
  example: ' --data data --https 0.0.0.0:8443',
  uses: all,
  load: async () => (await import('./serve.ts')).serve,
})
export const configCheck = withSettings({
  words: 'config check',
  what: 'Validate and print the settings.',
  example: ' --config platform.yaml',
  uses: all,
  load: async () => (await import('./config-check.ts')).configCheck,
})
export const adminReset = withSettings({
  words: 'admin reset',
  what: 'Create a new administrator key; the server must be stopped.',
  example: '',
  uses: [...stored, ...ofEtcd, 'https', 'tlsCert', 'tlsKey', 'tlsCa', ...audited],
  load: async () => (await import('./admin-reset.ts')).adminReset,
})
export const auditHash = withSettings({
  words: 'audit hash',
  what: 'Read a value from stdin and print the hash that the audit log shows for it.',
  example: ' --data data < FILE',
  uses: ['data'],
  load: async () => (await import('./audit-hash.ts')).auditHash,
})
export const storageStatus = withSettings({
  words: 'storage status',
  what: 'Show which keys encrypt the stored values.',
  example: ' --data data',
  uses: [...stored, ...ofEtcd],
  load: async () => (await import('./storage.ts')).storageStatus,
})
export const storageRotateKey = withSettings({
  words: 'storage rotate-key',
  what: 'Re-encrypt everything with a new key. Works while the server runs. On etcd, run it twice: all replicas need the key before one uses it.',
  example: ' --data data',
  uses: [...stored, ...ofEtcd],
  load: async () => (await import('./storage.ts')).storageRotateKey,
})
