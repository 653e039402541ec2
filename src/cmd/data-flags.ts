// What the commands that open a data directory have in common: which one, and the key ring that goes with it.

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
    what: 'The key ring: a file, or env:NAME (or PLATFORM_MASTER_KEY); default: master.key in the data directory.',
  },
} as const satisfies Flags

/** Files that a backup takes along: clients know a server by its authority, and a restored one is the same to them. */
export const carried = ['ca.crt', 'ca.key']

type Asked = Given<typeof dataFlags>['flags']

export type DataPlace = {
  readonly settings: Settings
  readonly directory: string
  /** Throws where there is none. */
  ring(): KeyRing
}

/** `directory`: given as an argument of its own. */
export async function dataPlace(flags: Partial<Asked>, env: NodeJS.ProcessEnv, directory?: string): Promise<DataPlace> {
  const data = directory ?? flags.data
  const args = [
    ...(flags.config === undefined ? [] : ['--config', flags.config]),
    ...(data === undefined ? [] : ['--data', data]),
    ...(flags['master-key'] === undefined ? [] : ['--master-key', flags['master-key']]),
  ]
  const settings = await readSettings(args, env)
  const place = resolve(settings.data)
  const ring = () => keyRingIn({ directory: place, setting: settings.masterKey, env, mayMake: false })
  return { settings, directory: place, ring }
}
