// Table of all commands, each loaded on demand.

import { commands as ownCommands } from '../cli/index.ts'
import { defineCommand, type Row } from '../host/command.ts'
import { version } from './version.ts'

const withSettings = () => import('./server-commands.ts')

export const commands: readonly Row[] = [
  { words: ['serve'], load: async () => (await withSettings()).serve },
  { words: ['config', 'check'], load: async () => (await withSettings()).configCheck },
  { words: ['admin', 'reset'], load: async () => (await withSettings()).adminReset },
  { words: ['audit', 'hash'], load: async () => (await withSettings()).auditHash },
  { words: ['storage', 'status'], load: async () => (await withSettings()).storageStatus },
  { words: ['storage', 'rotate-key'], load: async () => (await withSettings()).storageRotateKey },
  { words: ['backup'], load: async () => (await import('./backup.ts')).backup },
  { words: ['restore'], load: async () => (await import('./restore.ts')).restore },
  { words: ['verify'], load: async () => (await import('./verify.ts')).verify },
  { words: ['gateway'], load: async () => (await import('./gateway.ts')).gateway },
  { words: ['vcluster', 'sync'], load: async () => (await import('./vcluster-sync.ts')).vclusterSync },
  ...ownCommands,
  { words: ['__complete'], load: async () => (await import('../cli/complete.ts')).completeOf(() => commands) },
  defineCommand({
    words: ['version'],
    what: 'Print the version.',
    examples: [],
    flags: {},
    run: async (_, { out }) => {
      out(`${version}\n`)
      return 0
    },
  }),
]
