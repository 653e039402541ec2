// Cluster: reads and watches what concerns it (D68).

import type { Admission } from '../api/admission.ts'
import type { ObjectOf } from '../api/kind.ts'
import type { Json, Resource } from '../api/object.ts'
import type { Watch } from '../api/resources.ts'
import { Cluster } from '../kinds/cluster.ts'

type Named = { readonly name: string; readonly uid: string }

type Dependencies = {
  /** The desired content of the cluster, without data. Throws if nothing is sent to it. */
  readonly desiredItems: (cluster: Named) => { readonly version: string; readonly items: readonly Json[] }
  readonly watchDesired: (cluster: Named) => Watch
}

export const clusterAdmission = ({
  desiredItems,
  watchDesired,
}: Dependencies): Admission<ObjectOf<typeof Cluster>> => ({
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
