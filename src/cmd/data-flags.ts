// Flags of commands that open a data directory, and its key ring.

import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type KeyRing, keyRingIn } from '../apiserver/data-directory.ts'
import { readSettings, type Settings } from '../apiserver/settings.ts'
import type { Flags, Given } from '../host/command.ts'
import type { Files } from '../storage/records.ts'

export const dataFlags = {
  config: { type: 'text', value: 'FILE', what: 'File with settings.' },
  data: { type: 'text', value: 'DIR', what: 'The data directory (or PLATFORM_DATA).' },
  'master-key': {
    type: 'text',
    value: 'FILE',
    what: 'The key ring: a file or env:NAME (or PLATFORM_MASTER_KEY). Default: master.key in the data directory.',
  },
} as const satisfies Flags

export const etcdFlags = {
  'etcd-endpoints': {
    type: 'list',
    value: 'URL',
    what: 'URL of an etcd member. May be repeated (or PLATFORM_ETCD_ENDPOINTS).',
  },
  'etcd-ca': { type: 'text', value: 'FILE', what: 'CA of the etcd members (or PLATFORM_ETCD_CA).' },
  'etcd-cert': { type: 'text', value: 'FILE', what: 'Client certificate for etcd (or PLATFORM_ETCD_CERT).' },
  'etcd-key': { type: 'text', value: 'FILE', what: 'Private key of the client certificate (or PLATFORM_ETCD_KEY).' },
  'etcd-prefix': {
    type: 'text',
    value: 'PREFIX',
    what: 'Prefix of the keys in etcd (or PLATFORM_ETCD_PREFIX). Default: /platform.',
  },
  'etcd-allow-unsafe-version': {
    type: 'switch',
    what: 'Accept versions of etcd with known bugs. For tests.',
  },
} as const satisfies Flags

/** Flags of commands that also work on etcd. */
export const storageFlags = {
  ...dataFlags,
  storage: {
    type: 'text',
    value: 'ENGINE',
    what: 'Storage engine: sqlite or etcd (or PLATFORM_STORAGE). Default: sqlite.',
  },
  ...etcdFlags,
} as const satisfies Flags

/** Files in a backup. With the same CA, clients trust a restored server. */
export const backupFiles = ['ca.crt', 'ca.key'] as const

export const filesIn = (directory: string): Files =>
  Object.fromEntries(
    backupFiles.flatMap(name => {
      const path = join(directory, name)
      return existsSync(path) ? [[name, readFileSync(path)]] : []
    }),
  )

type DataFlags = Given<typeof storageFlags>['flags']
const names = Object.keys(storageFlags) as (keyof DataFlags)[]

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
  const given = directory === undefined ? flags : { ...flags, data: directory }
  const args = names.flatMap(name => {
    const value = given[name]
    if (typeof value === 'boolean') return value ? [`--${name}`] : []
    return [value ?? []].flat().flatMap(one => [`--${name}`, one])
  })
  const settings = await readSettings(args, env)
  const resolved = resolve(settings.data)
  const ring = () => keyRingIn({ directory: resolved, setting: settings.masterKey, env, mayMake: false })
  return { settings, directory: resolved, ring }
}
