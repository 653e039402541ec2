// Stores one-time state of sign-in: device codes, codes for the command line, ids of used tokens. Bounded, sealed and shared by replicas.

import { hash } from 'node:crypto'
import { ApiError, ignoreConflict, tooManyRequests } from '../../api/errors.ts'
import type { JsonObject, Ref, Resource } from '../../api/object.ts'
import { timestamp } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { LoginState } from '../../kinds/login-state.ts'
import { startInformer } from '../../reconcile/informer.ts'

export interface LoginStates {
  readonly ready: Promise<void>
  /** Stores state under a secret id, of which only the hash is stored. Throws 429 if `max` of this purpose exist. */
  put(purpose: string, id: string, entry: NewState): Promise<void>
  get(purpose: string, id: string): JsonObject | undefined
  /** Changes state that `get` returned. False: it was taken, replaced or has expired meanwhile. */
  replace(purpose: string, id: string, before: JsonObject, data: JsonObject): Promise<boolean>
  /** Returns the state and deletes it. Only one caller gets it. */
  take(purpose: string, id: string): Promise<JsonObject | undefined>
  /** True for the first caller with this id until it expires: a replay cache. Throws 429 if it is full. */
  claim(purpose: string, id: string, limits: Omit<NewState, 'data'>): Promise<boolean>
  stop(): void
}

/** `ttl` in seconds. */
export type NewState = { readonly data: JsonObject; readonly ttl: number; readonly max: number }

export type LoginStatesOptions = {
  readonly resources: Resources
  /** A stored object, decrypted. */
  readonly open: (ref: Ref) => Resource | undefined
  readonly now: () => number
  readonly failed: (error: unknown) => void
}

const sweepEvery = 60_000

export function openLoginStates({ resources, open, now, failed }: LoginStatesOptions): LoginStates {
  const counts = new Map<string, number>()
  const count = (purpose: string, by: number) => counts.set(purpose, (counts.get(purpose) ?? 0) + by)
  const informer = startInformer({
    resources,
    kind: LoginState,
    keep: ({ metadata, spec = {} }) => ({
      name: metadata.name ?? '',
      purpose: String(spec['purpose']),
      expires: Date.parse(String(spec['expires'])),
    }),
    changed: (_, state, before) => {
      if (before) count(before.purpose, -1)
      if (state) count(state.purpose, 1)
    },
    failed,
  })
  const remove = (name: string, preconditions?: { readonly uid: string; readonly resourceVersion: string }) =>
    resources
      .delete(LoginState, { namespace: '', name }, preconditions ? { preconditions } : {})
      .then(() => true, ignoreConflict)
  const sweep = () => {
    const time = now()
    for (const { name, expires } of informer.values()) if (!(expires > time)) remove(name).catch(failed)
  }
  const timer = setInterval(sweep, sweepEvery).unref()

  const find = (name: string) => {
    const stored = open({ namespace: '', name })
    if (!stored || !(Date.parse(String(stored.spec?.['expires'])) > now())) return undefined
    return { stored, data: JSON.parse(String(stored.spec?.['data'] ?? '{}')) as JsonObject }
  }

  /** False: the id exists. */
  const create = async (purpose: string, id: string, { data, ttl, max }: NewState): Promise<boolean> => {
    if ((counts.get(purpose) ?? 0) >= max) {
      sweep()
      throw tooManyRequests()
    }
    const name = nameOf(purpose, id)
    const spec = { purpose, expires: timestamp(now() + ttl * 1000), data: JSON.stringify(data) }
    try {
      await resources.create(LoginState, '', { metadata: { name }, spec }, { fieldManager: 'platform' })
      return true
    } catch (error) {
      if (!(error instanceof ApiError) || error.status.reason !== 'AlreadyExists') throw error
    }
    if (find(name)) return false
    // Expired, but not swept yet.
    await remove(name)
    return create(purpose, id, { data, ttl, max })
  }

  return {
    ready: informer.ready,
    async put(purpose, id, entry) {
      if (!(await create(purpose, id, entry))) throw tooManyRequests()
    },
    get: (purpose, id) => find(nameOf(purpose, id))?.data,
    async replace(purpose, id, before, data) {
      const found = find(nameOf(purpose, id))
      if (!found || JSON.stringify(found.data) !== JSON.stringify(before)) return false
      const { metadata, spec } = found.stored
      const next = { metadata, spec: { ...spec, data: JSON.stringify(data) } } as unknown as JsonObject
      const ref = { namespace: '', name: metadata.name ?? '' }
      const updated = await resources.update(LoginState, ref, next, { fieldManager: 'platform' }).catch(ignoreConflict)
      return updated !== undefined
    },
    async take(purpose, id) {
      const name = nameOf(purpose, id)
      const found = find(name)
      if (!found) return undefined
      const { uid = '', resourceVersion = '' } = found.stored.metadata
      return (await remove(name, { uid, resourceVersion })) ? found.data : undefined
    },
    claim: (purpose, id, limits) => create(purpose, id, { ...limits, data: {} }),
    stop() {
      clearInterval(timer)
      informer.stop()
    },
  }
}

const nameOf = (purpose: string, id: string) => `${purpose}-${hash('sha256', id, 'hex')}`
