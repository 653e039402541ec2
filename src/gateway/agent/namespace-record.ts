// Remembers the namespaces in which the agent may have Secrets, in a ConfigMap, so that it finds them after a restart.
// An agent has permissions only in some namespaces, so it cannot search the whole cluster.

import { isNotFound } from '../../api/errors.ts'
import type { Json, Ref, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { ConfigMap } from '../../reconcile/kubernetes-kinds.ts'
import { labelsOf } from './marks.ts'

export interface NamespaceRecord {
  read(): Promise<ReadonlySet<string>>
  write(namespaces: ReadonlySet<string>): Promise<void>
}

type StoredRecord = Resource & { readonly data?: { readonly namespaces?: string } }

export function openNamespaceRecord(resources: Resources, at: Ref, uid: string): NamespaceRecord {
  const get = async (): Promise<StoredRecord | undefined> => {
    try {
      return (await resources.get(ConfigMap, at)).object as StoredRecord
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }
  return {
    read: async () => new Set((await get())?.data?.namespaces?.split('\n').filter(Boolean)),
    async write(namespaces) {
      const data = { namespaces: [...namespaces].toSorted().join('\n') }
      const stored = await get()
      const base = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...at, labels: labelsOf(uid) } }
      const body = { ...(stored ?? base), data } as unknown as Json
      if (stored) await resources.update(ConfigMap, at, body)
      else await resources.create(ConfigMap, at.namespace, body)
    },
  }
}
