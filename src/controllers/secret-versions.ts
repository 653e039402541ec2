// Keeps the history of secrets within its bounds (D35): so many versions, for so many days, and none of a secret that is gone.

import { ignoreNotFound } from '../api/errors.ts'
import { type Ref, type Resource, timestamp } from '../api/object.ts'
import { type Resources, refOf } from '../api/resources.ts'
import { ProjectSecret } from '../kinds/project-secret.ts'
import { SecretVersion, versionLabel } from '../kinds/secret-version.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'

export type SecretVersionsOptions = {
  readonly resources: Resources
  /** How many earlier versions of a secret are kept, and for how many days after they were replaced. */
  readonly max: number
  readonly days: number
  readonly now: () => number
  /** Called for every deleted secret. */
  readonly gone: (uid: string) => void
  readonly failed: (what: string, error: unknown) => void
}

type Kept = {
  readonly ref: Ref
  readonly uid: string
  readonly number: number
  readonly since: number
  readonly secret: { readonly kind?: string; readonly name?: string }
}

const day = 24 * 3600 * 1000
const secrets = [SharedSecret, ProjectSecret]

export function startSecretVersions({ resources, max, days, now, gone, failed }: SecretVersionsOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  /** By the uid of the secret, then by name. */
  const histories = new Map<string, Map<string, Kept>>()
  const loop = startLoop({
    reconcile: async uid => {
      const kept = [...(histories.get(uid)?.values() ?? [])].sort((one, other) => other.number - one.number)
      const [newest] = kept
      if (!newest) return undefined
      const isGone = !(await isThere(resources, newest))
      const isOver = ({ since }: Kept, index: number) => isGone || index >= max || since + days * day <= now()
      for (const one of kept.filter(isOver)) await resources.delete(SecretVersion, one.ref).catch(ignoreNotFound)
      const oldest = kept.filter((one, index) => !isOver(one, index)).at(-1)
      return oldest && oldest.since + days * day - now()
    },
    failed: (uid, error) => failed(`pruning versions of secret ${uid}`, error),
  })
  const versions = startInformer({
    resources,
    kind: SecretVersion,
    keep: keptOf,
    changed: ({ name }, next, before) => {
      const { uid = '' } = next ?? before ?? {}
      const all = histories.get(uid) ?? new Map<string, Kept>()
      if (next) all.set(name, next)
      else all.delete(name)
      if (all.size) histories.set(uid, all)
      else histories.delete(uid)
      if (next) loop.add(uid)
    },
    failed: error => failed('watching versions of secrets', error),
  })
  // An orphaned version has lost the reference by which the garbage collector would find it.
  const owners = secrets.map(kind =>
    startInformer({
      resources,
      kind,
      counts: () => false,
      keep: () => undefined,
      deleted: ({ metadata: { uid = '' } }) => {
        gone(uid)
        loop.add(uid)
      },
      listed: () => {
        for (const uid of histories.keys()) loop.add(uid)
      },
      failed: error => failed(`watching ${kind.plural}`, error),
    }),
  )
  const informers = [versions, ...owners]
  return {
    ready: Promise.all(informers.map(one => one.ready)).then(() => {}),
    idle: loop.idle,
    async stop() {
      for (const one of informers) one.stop()
      await loop.stop()
    },
  }
}

function keptOf(object: Resource): Kept {
  const { version, secret } = (object.spec ?? {}) as { version?: { number?: number }; secret?: Kept['secret'] }
  return {
    ref: refOf(object),
    uid: object.metadata.labels?.[versionLabel] ?? '',
    number: version?.number ?? 0,
    since: Date.parse(object.metadata.creationTimestamp ?? timestamp(0)),
    secret: secret ?? {},
  }
}

/** Whether the very secret is there: another of the same name has a history of its own. */
async function isThere(resources: Resources, { ref, uid, secret }: Kept): Promise<boolean> {
  const kind = secrets.find(one => one.kind === secret.kind)
  if (!kind) return false
  const found = await resources.get(kind, { namespace: ref.namespace, name: secret.name ?? '' }).catch(ignoreNotFound)
  return found?.object.metadata.uid === uid
}
