// Connected clusters for tests: a server, its people, clusters and the keys of their agents.

import { must, openStage, ours, type Person, rbac, type Stage, soon } from '../access/people.ts'

export const clusters = `${ours}/clusters`
export const projectSecrets = (project: string) => `${ours}/namespaces/p-${project}/projectsecrets`

export type ClusterStage = Stage & {
  /** Creates a cluster and a key of its agent. */
  connect(name: string, spec?: object, labels?: object): Promise<Agent>
  /** Gives a user rules everywhere. */
  allow(user: string, ...rules: readonly object[]): Promise<void>
}

export type Agent = Person & {
  readonly cluster: string
  readonly uid: string
  /** The items that a new watch begins with, by name. */
  initial(): Promise<Items>
}

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came
export type Items = { readonly [name: string]: any }

const group = 'management.platform.sh'

/** A rule about kinds of this API. */
export const rule = (verbs: readonly string[], resources: readonly string[], resourceNames?: readonly string[]) => ({
  verbs,
  apiGroups: [group],
  resources,
  ...(resourceNames ? { resourceNames } : {}),
})

export const merge = { 'content-type': 'application/merge-patch+json' }

export async function openClusterStage(): Promise<ClusterStage> {
  const stage = await openStage()
  const { admin } = stage
  let count = 0
  return {
    ...stage,
    async connect(name, spec = {}, labels = {}) {
      const { metadata } = await must(admin.ask('POST', clusters, { metadata: { name, labels }, spec }))
      return agentOf(stage, name, metadata.uid)
    },
    async allow(user, ...rules) {
      const name = `allow-${++count}`
      await must(admin.ask('POST', `${rbac}/clusterroles`, { metadata: { name }, rules }))
      await must(
        admin.ask('POST', `${rbac}/clusterrolebindings`, {
          metadata: { name },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
        }),
      )
    },
  }
}

export async function agentOf(stage: Stage, name: string, uid: string): Promise<Agent> {
  const spec = { subject: `platform:cluster:${name}:${uid}`, scope: { roles: [{ role: 'agent' }] } }
  const created = await must(stage.admin.ask('POST', `${ours}/ownedaccesskeys`, { spec }))
  const person = stage.person(spec.subject, created.spec.key)
  return { ...person, cluster: name, uid, initial: () => initialOf(person, name) }
}

export const desiredOf = (cluster: string) => `${clusters}/${cluster}/desired`

async function initialOf(person: Person, cluster: string): Promise<Items> {
  const items: { [name: string]: unknown } = {}
  for await (const { type, object } of person.watch(desiredOf(cluster))) {
    if (type === 'ERROR') throw new Error(object.message)
    if (type === 'BOOKMARK') break
    items[object.metadata.name] = object
  }
  return items
}

/** Waits until the agent's items are named so. */
export const untilItems = (agent: Agent, ...names: readonly string[]) =>
  soon(`the items of ${agent.cluster} are ${names.join(', ')}`, async () => {
    const found = Object.keys(await agent.initial())
    return found.sort().join() === [...names].sort().join()
  })
