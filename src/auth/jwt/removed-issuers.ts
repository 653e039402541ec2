// Ends what machines got through an entry of auth.yaml that was removed or changed: exchanged keys and direct-cluster tokens (D67).
// The entries are stored, so that a change while the server is stopped counts too.

import type { Companion } from '../../api/admission.ts'
import { ignoreConflict } from '../../api/errors.ts'
import type { JsonObject } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import type { MachineRecord } from '../../kinds/machine-key.ts'
import { issuerRevocation } from '../../kinds/merged-revocation.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import type { AccessKeyIndex } from '../authn/access-key-index.ts'
import type { LoginStates } from '../sessions/login-states.ts'
import type { IssuerConfig } from './auth-config.ts'

export interface RemovedIssuers {
  /** Compares the entries with those of the last call, and ends what they no longer accept. Retries in the background. */
  update(): Promise<void>
  stop(): void
}

export type RemovedIssuersOptions = {
  /** The entries in use. */
  readonly issuers: () => readonly IssuerConfig[]
  readonly isAccepted: (record: MachineRecord) => boolean
  readonly keyIndex: Pick<AccessKeyIndex, 'all'>
  readonly states: Pick<LoginStates, 'get' | 'put' | 'replace'>
  readonly resources: Resources
  /** Writes objects and merges them with stored ones. */
  readonly write: (make: () => readonly Companion[]) => Promise<void>
  readonly digest: (text: string) => string
  readonly now: () => number
  readonly failed: (error: unknown) => void
}

const [purpose, id] = ['issuers', 'all']
/** Seconds: the state has no end of its own. */
const forever = 100 * 365 * 86_400
const retryAfter = 5000

type Kept = Pick<IssuerConfig, 'name' | 'url' | 'audiences' | 'stamp'>

export function openRemovedIssuers(options: RemovedIssuersOptions): RemovedIssuers {
  const { issuers, isAccepted, keyIndex, states, resources, write, digest, now, failed } = options
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()

  async function compare(): Promise<void> {
    const stored = states.get(purpose, id)
    const before = (stored?.['entries'] ?? []) as unknown as readonly Kept[]
    const current = issuers().map(({ name, url, audiences, stamp }): Kept => ({ name, url, audiences, stamp }))
    const lost = new Set(before.filter(one => !isKept(one, current)).map(({ name }) => name))
    if (lost.size) await write(() => [...lost].map(name => issuerRevocation(name, { now, digest })))
    for (const { name, uid, machine, deleting } of [...keyIndex.all()])
      if (machine && !deleting && !isAccepted(machine)) await remove(name, uid)
    const next = { entries: current } as unknown as JsonObject
    if (stored && JSON.stringify(stored) === JSON.stringify(next)) return
    if (stored) await states.replace(purpose, id, stored, next)
    else if (current.length) await states.put(purpose, id, { data: next, ttl: forever, max: 1 })
  }

  /** It would be valid again if the entry came back. */
  const remove = (name: string, uid: string) =>
    resources.delete(OwnedAccessKey, { namespace: '', name }, { preconditions: { uid } }).then(() => {}, ignoreConflict)

  const update = (): Promise<void> => {
    clearTimeout(timer)
    // One at a time, so that none misses what another has stored.
    running = running.then(compare).catch(error => {
      failed(error)
      timer = setTimeout(() => void update(), retryAfter).unref()
    })
    return running
  }
  return { update, stop: () => clearTimeout(timer) }
}

const isKept = (one: Kept, current: readonly Kept[]): boolean =>
  current.some(
    ({ name, url, stamp, audiences }) =>
      name === one.name &&
      url === one.url &&
      stamp === one.stamp &&
      one.audiences.every(audience => audiences.includes(audience)),
  )
