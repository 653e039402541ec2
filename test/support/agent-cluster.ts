// A cluster for the agent: this project's server with kinds of Kubernetes, over real sockets, with namespaces, quotas and denials.

import { systemCaller } from '../../src/api/caller.ts'
import { ApiError, invalid, invalidValue } from '../../src/api/errors.ts'
import type { Kind } from '../../src/api/kind.ts'
import type { Json, Ref, Resource } from '../../src/api/object.ts'
import { prefix } from '../../src/api/paths.ts'
import type { Resources } from '../../src/api/resources.ts'
import { ClusterRole, ClusterRoleBinding } from '../../src/kinds/rbac.ts'
import { ConfigMap, Lease, Secret } from '../../src/reconcile/kubernetes-kinds.ts'
import type { Access } from '../../src/transport/cluster-config.ts'
import { buildApiServer, openFront } from './in-process.ts'

export type SecretObject = Resource & {
  readonly type?: string
  readonly immutable?: boolean
  readonly data?: { readonly [key: string]: string }
}
export type BindingObject = Resource & {
  readonly roleRef: { readonly name: string }
  readonly subjects: readonly { readonly name: string }[]
}

type Verb = 'create' | 'update' | 'delete' | 'get' | 'list' | 'watch'
export type Denial = (verb: Verb, kind: Kind, at: Ref) => ApiError | undefined

export type AgentCluster = {
  readonly access: Access
  /** Without namespaces, quotas and denials: the people of the cluster. */
  readonly people: Resources
  readonly namespaces: Map<string, 'Active' | 'Terminating'>
  /** Rejects requests of the agent. */
  deny: Denial
  /** Writes of the agent to Secrets and bindings, as `create Secret shop/token`. */
  readonly writes: string[]
  /** The most requests of the agent that were in flight at once, watches excluded. */
  readonly mostInFlight: () => number
  secret(namespace: string, name: string): Promise<SecretObject | undefined>
  binding(name: string): Promise<BindingObject | undefined>
  createRole(name: string): Promise<void>
  createSecret(object: object): Promise<void>
  /** Stops listening, and listens again at the same address. */
  stop(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}

const kinds = [Secret, ConfigMap, Lease]
const isOurs = (kind: Kind) => kind.id === Secret.id || kind.id === ClusterRoleBinding.id

export async function openAgentCluster(): Promise<AgentCluster> {
  const clock = { now: Date.now, forward: () => {} }
  const apiServer = await buildApiServer({ kinds, clock })
  const people = apiServer.as(systemCaller)
  const namespaces: AgentCluster['namespaces'] = new Map([
    ['default', 'Active'],
    ['platform-agent', 'Active'],
  ])
  const state = { deny: (() => undefined) as Denial }
  const writes: string[] = []
  let inFlight = 0
  let most = 0

  const check = (verb: Verb, kind: Kind, at: Ref) => {
    const denial = state.deny(verb, kind, at)
    if (denial) throw denial
    if (verb !== 'create' || !at.namespace) return
    const phase = namespaces.get(at.namespace)
    if (!phase) throw new ApiError(404, 'NotFound', `namespaces "${at.namespace}" not found`)
    if (phase === 'Terminating') throw terminating(at)
  }
  async function counted<T>(verb: Verb, kind: Kind, at: Ref, run: () => Promise<T>): Promise<T> {
    most = Math.max(most, ++inFlight)
    try {
      check(verb, kind, at)
      const answer = await run()
      if (isOurs(kind) && ['create', 'update', 'delete'].includes(verb))
        writes.push(`${verb} ${kind.kind} ${at.namespace ? `${at.namespace}/` : ''}${at.name}`)
      return answer
    } finally {
      inFlight--
    }
  }
  const nameOf = (object: Json) => (object as unknown as Resource).metadata?.name ?? ''
  const agent: Resources = {
    ...people,
    create: (kind, namespace, object, options) =>
      counted('create', kind, { namespace, name: nameOf(object) }, () =>
        people.create(kind, namespace, object, options),
      ),
    update: (kind, ref, object, options) =>
      counted('update', kind, ref, async () => {
        await checkFixed(people, kind, ref, object)
        return people.update(kind, ref, object, options)
      }),
    delete: (kind, ref, options) => counted('delete', kind, ref, () => people.delete(kind, ref, options)),
    get: (kind, ref, options) => counted('get', kind, ref, () => people.get(kind, ref, options)),
    list: (kind, options) =>
      counted('list', kind, { namespace: options?.namespace ?? '', name: '' }, () => people.list(kind, options)),
    watch: async (kind, options) => {
      check('watch', kind, { namespace: options?.namespace ?? '', name: '' })
      return people.watch(kind, options)
    },
  }
  const served = { ...apiServer, as: () => agent }
  let front = await openFront(served, systemCaller)
  const { url } = front
  const find = async (kind: Kind, ref: Ref) => {
    try {
      return (await people.get(kind, ref)).object
    } catch (error) {
      if ((error as ApiError).code === 404) return undefined
      throw error
    }
  }
  return {
    access: { server: `${url}${prefix}`, namespace: 'default', insecure: false },
    people,
    namespaces,
    get deny() {
      return state.deny
    },
    set deny(next) {
      state.deny = next
    },
    writes,
    mostInFlight: () => most,
    secret: async (namespace, name) => (await find(Secret, { namespace, name })) as SecretObject | undefined,
    binding: async name => (await find(ClusterRoleBinding, { namespace: '', name })) as BindingObject | undefined,
    async createRole(name) {
      await people.create(ClusterRole, '', { metadata: { name }, rules: [] } as unknown as Json)
    },
    async createSecret(object) {
      const { namespace = '' } = (object as Resource).metadata
      await people.create(Secret, namespace, { apiVersion: 'v1', kind: 'Secret', ...object } as unknown as Json)
    },
    stop: () => front.close(),
    async start() {
      front = await openFront(served, systemCaller, Number(new URL(url).port))
    },
    async close() {
      await front.close()
      await apiServer.close()
    },
  }
}

const terminating = ({ namespace, name }: Ref) => {
  const message = `secrets "${name}" is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`
  return new ApiError(403, 'Forbidden', message, {
    details: {
      name,
      kind: 'secrets',
      causes: [{ reason: 'NamespaceTerminating', message, field: 'metadata.namespace' }],
    },
  })
}

/** Kubernetes does not change the type of a Secret, nor an immutable one. */
async function checkFixed(people: Resources, kind: Kind, ref: Ref, object: Json): Promise<void> {
  if (kind.id !== Secret.id) return
  const old = (await people.get(kind, ref)).object as SecretObject
  const next = object as unknown as SecretObject
  const errors = [
    ...((old.type ?? 'Opaque') === (next.type ?? 'Opaque')
      ? []
      : [invalidValue('type', next.type, 'field is immutable')]),
    ...(old.immutable ? [invalidValue('data', '', 'field is immutable when `immutable` is set')] : []),
  ]
  if (errors.length) throw invalid(Secret, ref.name, errors)
}
