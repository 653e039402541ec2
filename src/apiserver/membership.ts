// Makes this replica known to the others, and keeps admin.kubeconfig up to date with them.

import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { writeSecret } from '../host/secret-file.ts'
import type { Replicas } from '../storage/storage.ts'
import { writeServerContexts } from './server-contexts.ts'
import type { Settings } from './settings.ts'

export type MembershipOptions = {
  readonly replicas: Replicas
  readonly settings: Pick<Settings, 'replica.url'>
  readonly id: string
  readonly listeners: readonly { readonly url: string }[]
  readonly version: string
  readonly now: () => number
}

type MembershipFailed = (what: string, error: unknown) => void

/** Throws if another replica has the same id. */
export async function joinReplicas(options: MembershipOptions): Promise<void> {
  const { replicas, id, settings, listeners, version, now } = options
  const secure = listeners.find(({ url }) => url.startsWith('https:'))
  await replicas.register({
    id,
    url: settings['replica.url'] || (secure ? addressForOthers(secure.url) : ''),
    version,
    startedAt: new Date(now()).toISOString(),
  })
}

/** Call after admin.kubeconfig is written. */
export function followReplicas(replicas: Replicas, directory: string, failed: MembershipFailed): void {
  const update = () => {
    const urls = replicas.others().flatMap(({ isRunning, url }) => (isRunning && url ? [url] : []))
    try {
      writeServerContexts(directory, urls)
    } catch (error) {
      failed('updating admin.kubeconfig', error)
    }
  }
  replicas.onChange(update)
  update()
}

/** It stays the same across restarts, because the audit log in the directory does. */
export function replicaIdIn(directory: string): string {
  const file = join(directory, 'replica.id')
  if (!existsSync(file)) writeSecret(file, `${randomBytes(8).toString('hex')}\n`)
  const id = readFileSync(file, 'utf8').trim()
  if (!/^[0-9a-f]{16}$/.test(id))
    throw new Error(`${file} does not contain an id: delete it, and the server creates a new one`)
  return id
}

/** A listener on all addresses is reachable at the name of the machine. */
const addressForOthers = (url: string) => url.replace(/^https:\/\/(0\.0\.0\.0|\[::\]):/, `https://${hostname()}:`)
