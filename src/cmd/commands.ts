// Table of all commands, each loaded on demand.

import { commands as ownCommands } from '../cli/index.ts'
import { defineCommand, type Row } from '../host/command.ts'
import { version } from './version.ts'

const withSettings = () => import('./server-commands.ts')

export const commands: readonly Row[] = [
  { subject: 'Server', words: ['serve'], load: async () => (await withSettings()).serve },
  { subject: 'Server', words: ['config', 'check'], load: async () => (await withSettings()).configCheck },
  { subject: 'Server', words: ['admin', 'reset'], load: async () => (await withSettings()).adminReset },
  {
    subject: 'Server',
    words: ['admin', 'emergency-key'],
    load: async () => (await import('./emergency-key.ts')).emergencyKey,
  },
  { subject: 'Server', words: ['audit', 'hash'], load: async () => (await withSettings()).auditHash },
  { subject: 'Server', words: ['storage', 'status'], load: async () => (await withSettings()).storageStatus },
  { subject: 'Server', words: ['storage', 'rotate-key'], load: async () => (await withSettings()).storageRotateKey },
  {
    subject: 'Server',
    words: ['storage', 'migrate'],
    load: async () => (await import('./storage-migrate.ts')).storageMigrate,
  },
  { subject: 'Server', words: ['backup'], load: async () => (await import('./backup.ts')).backup },
  { subject: 'Server', words: ['restore'], load: async () => (await import('./restore.ts')).restore },
  { subject: 'Server', words: ['verify'], load: async () => (await import('./verify.ts')).verify },
  {
    subject: 'Server',
    words: ['support-bundle'],
    load: async () => (await import('./support-bundle.ts')).supportBundle,
  },
  { subject: 'Server', words: ['gateway'], load: async () => (await import('./gateway.ts')).gateway },
  {
    subject: 'Virtual clusters',
    words: ['vcluster', 'sync'],
    load: async () => (await import('./vcluster-sync.ts')).vclusterSync,
  },
  ...ownCommands,
  { words: ['__complete'], load: async () => (await import('../cli/complete.ts')).completeOf(() => commands) },
  {
    ...defineCommand({
      words: ['version'],
      what: 'Print the version.',
      examples: [],
      flags: {},
      run: async (_, { out }) => {
        out(`${version}\n`)
        return 0
      },
    }),
    subject: 'This program',
  },
]
