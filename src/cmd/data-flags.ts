// Flags of commands that open a data directory, and its key ring.

import { resolve } from 'node:path'
import { type KeyRing, keyRingIn } from '../apiserver/data-directory.ts'
import { readSettings, type Settings } from '../apiserver/settings.ts'
import type { Flags, Given } from '../host/command.ts'

export const dataFlags = {
  config: { type: 'text', value: 'FILE', what: 'File with settings.' },
  data: { type: 'text', value: 'DIR', what: 'The data directory (or PLATFORM_DATA).' },
  'master-key': {
    type: 'text',
    value: 'FILE',
    what: 'The key ring: a file or env:NAME (or PLATFORM_MASTER_KEY). Default: master.key in the data directory.',
  },
} as const satisfies Flags

/** Files in a backup. With the same CA, clients trust a restored server. */
export const backupFiles = ['ca.crt', 'ca.key']

type DataFlags = Given<typeof dataFlags>['flags']

export type DataDirectory = {
  readonly settings: Settings
  readonly directory: string
  /** Throws if there is no key ring. */
  ring(): KeyRing
}

/** `directory` overrides --data. */
export async function resolveData(
  flags: Partial<DataFlags>,
  env: NodeJS.ProcessEnv,
  directory?: string,
): Promise<DataDirectory> {
  const data = directory ?? flags.data
  const args = [
    ...(flags.config === undefined ? [] : ['--config', flags.config]),
    ...(data === undefined ? [] : ['--data', data]),
    ...(flags['master-key'] === undefined ? [] : ['--master-key', flags['master-key']]),
  ]
  const settings = await readSettings(args, env)
  const resolved = resolve(settings.data)
  const ring = () => keyRingIn({ directory: resolved, setting: settings.masterKey, env, mayMake: false })
  return { settings, directory: resolved, ring }
}
