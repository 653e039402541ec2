// Reads the settings of the etcd engine, with the files that they name.

import { readFileSync } from 'node:fs'
import { fileProblem } from '../host/fs-errors.ts'
import { pairProblems } from '../serving/tls.ts'
import type { EtcdSettings } from '../storage/storage.ts'
import { parseCertificates } from './certificate.ts'
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
  if (ca && !parseCertificates(String(ca)).length)
    problems.push(`etcd.ca: ${settings['etcd.ca']} does not contain a PEM certificate`)
  if (cert && key) {
    const files = { certificate: settings['etcd.cert'], key: settings['etcd.key'] }
    const ofPair = pairProblems({ certificate: String(cert), key: String(key) }, files)
    if (ofPair.length) problems.push(`etcd.cert and etcd.key: ${ofPair.join('; ')}`)
  }
  if (problems.length) throw new SettingsError(problems)
  return {
    endpoints: settings['etcd.endpoints'],
    prefix: settings['etcd.prefix'],
    tls: { ...(ca ? { ca } : {}), ...(cert ? { cert } : {}), ...(key ? { key } : {}) },
    allowUnsafeVersion: settings['etcd.allowUnsafeVersion'],
  }
}
