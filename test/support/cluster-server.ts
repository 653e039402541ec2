// A program that acts as a cluster for the syncer and the agent: this project's server with kinds of Kubernetes, on a persistent directory.
// Started and killed by cluster-process.ts with: DIRECTORY PORT

import { systemCaller } from '../../src/api/caller.ts'
import { prefix } from '../../src/api/paths.ts'
import { clusterKinds } from '../../src/vcluster/sync/kinds.ts'
import { buildApiServer, openFront } from './in-process.ts'

const [, , directory = '', port = '0'] = process.argv
const clock = { now: Date.now, forward: () => {} }
const apiServer = await buildApiServer({ kinds: clusterKinds, clock, engine: 'sqlite', directory })
// Kubernetes accepts labels of platform.sh, which the management API reserves for itself.
const front = await openFront(apiServer, systemCaller, Number(port))
console.log(`cluster: ${front.url}${prefix}`)
