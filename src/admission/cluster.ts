// Cluster: the time of its agent's reports, and reads and watches of what concerns it (D68).

import type { Admission } from '../api/admission.ts'
import type { ObjectOf } from '../api/kind.ts'
import { type Json, type Resource, timestamp } from '../api/object.ts'
import type { Watch } from '../api/resources.ts'
import { Cluster } from '../kinds/cluster.ts'
import { isAgentSubject } from '../kinds/cluster-desired.ts'

type Named = { readonly name: string; readonly uid: string }

type Dependencies = {
  /** The desired content of the cluster, without data. Throws if nothing is sent to it. */
  readonly desiredItems: (cluster: Named) => { readonly version: string; readonly items: readonly Json[] }
  readonly watchDesired: (cluster: Named) => Watch
  readonly now: () => number
}

export const clusterAdmission = ({
  desiredItems,
  watchDesired,
  now,
}: Dependencies): Admission<ObjectOf<typeof Cluster>> => ({
  // The clock of the agent may be wrong, and decides nothing here.
  admit: async (next, old, { caller }) => {
    const isReport = isAgentSubject(caller.username) && next.status?.lastContact !== old?.status?.lastContact
    return { object: isReport ? { ...next, status: { ...next.status, lastContact: timestamp(now()) } } : next }
  },
  subresources: {
    desired: async cluster => {
      const named = namedOf(cluster)
      const { version, items } = desiredItems(named)
      const { name } = named
      const metadata = { name, resourceVersion: version }
      const answer = { apiVersion: Cluster.apiVersion, kind: 'ClusterDesired', metadata, items }
      return { answer: answer as unknown as Resource }
    },
  },
  subresourceWatches: { desired: cluster => watchDesired(namedOf(cluster)) },
})

const namedOf = ({ metadata: { name = '', uid = '' } }: Pick<Resource, 'metadata'>): Named => ({ name, uid })
