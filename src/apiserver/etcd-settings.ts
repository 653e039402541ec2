// Reads the settings of the etcd engine, with the files that they name.

import { readFileSync } from 'node:fs'
import { fileProblem } from '../host/fs-errors.ts'
import type { EtcdSettings } from '../storage/storage.ts'
import { type Settings, SettingsError } from './settings.ts'

/** Undefined for another engine. Throws SettingsError with all problems. */
export function etcdOf(settings: Settings): EtcdSettings | undefined {
  if (settings.storage !== 'etcd') return undefined
  const problems: string[] = []
  const read = (key: 'etcd.ca' | 'etcd.cert' | 'etcd.key') => {
    const file = settings[key]
    if (file === '') return undefined
    try {
      return readFileSync(file)
    } catch (error) {
      problems.push(`${key}: ${fileProblem(file, error)}`)
      return undefined
    }
  }
  const [ca, cert, key] = [read('etcd.ca'), read('etcd.cert'), read('etcd.key')]
  if (problems.length) throw new SettingsError(problems)
  return {
    endpoints: settings['etcd.endpoints'],
    prefix: settings['etcd.prefix'],
    tls: { ...(ca ? { ca } : {}), ...(cert ? { cert } : {}), ...(key ? { key } : {}) },
    allowUnsafeVersion: settings['etcd.allowUnsafeVersion'],
  }
}
