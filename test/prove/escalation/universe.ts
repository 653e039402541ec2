// The finite set of requests for which the prover compares permissions, and subsets of it as bits.

import { createHash } from 'node:crypto'
import type { Ask } from '../../access/evaluator.ts'
import { type KindInfo, kinds, ours, rbac } from './objects.ts'

/** One request: on a resource, or on another path. */
export type Atom = Ask & { readonly path: string }
export type Bits = Uint32Array

/** Small pools, so that names collide. */
export const names = {
  /** Holders of access keys, people of the provider, and machines of the issuers. */
  users: ['ada', 'bob', 'eve', 'corp:pia', 'corp:quin', 'ci:job', 'bot:job'],
  /** Accounts at the provider. */
  accounts: ['pia', 'quin'],
  teams: ['red', 'blue', 'green'],
  groups: ['dev', 'ops', 'corp:dev', 'corp:ops', 'ci:run'],
  namespaces: ['default', 'p-shop'],
  projects: ['p-shop'],
  secrets: ['s0', 's1', 's2'],
  clusterRoles: ['r0', 'r1', 'r2', 'agg0', 'agg1', 'hat0', 'hat1'],
  clusterBindings: ['b0', 'b1', 'b2', 'b3', 'hat0', 'hat1', 'courier'],
  roles: ['q0', 'q1'],
  bindings: ['c0', 'c1'],
  keys: [
    'k0',
    'k1',
    'k2',
    'k3',
    'k4',
    'k5',
    'k6',
    'k7',
    'k8',
    'k9',
    'agent0',
    'agent1',
    'own0',
    'own1',
    'shop0',
    'cli0',
    'long0',
  ],
  clusters: ['c0', 'c1', 'c2'],
  /** Roles of connected clusters. Some have the names of roles of this API. */
  remoteRoles: ['r0', 'view'],
} as const
/** Secrets that clients choose for access keys. There are few, so that two clients choose the same one. */
export const chosenSecrets: readonly string[] = ['first', 'second', 'third'].map(word =>
  `chosen-${word}`.padEnd(40, '-'),
)
export const administrator = 'admin'
export const builtIn = 'platform-admin'
/** The scope of one of the issuers of machine tokens. */
export const machineScope = { projects: [{ project: 'shop' }] }

/** The Cluster that auth.yaml names for the tokens of service accounts. */
export type AgentEntry = { readonly cluster: string; readonly uid: string }
/** Before the first Cluster. */
export const noAgent: AgentEntry = { cluster: 'none', uid: '00000000-0000-4000-8000-000000000000' }
/** The service account of the agent, as in auth.yaml. */
export const agentAccount = { namespace: 'platform-agent', serviceAccount: 'platform-agent' }
/** Subjects of tokens: the service account of the agent, and one that has its name in another namespace. */
export const [agentTokens, otherTokens] = ['platform-agent', 'shop'].map(
  namespace => `system:serviceaccount:${namespace}:platform-agent`,
) as [string, string]

/** The name of the User object that the server creates at the first sign-in. */
export function userObject(username: string): string {
  const hash = createHash('sha256').update(username).digest('hex').slice(0, 8)
  return username.includes(':') ? `${username.replace(':', '-')}-${hash}` : username
}
/** Machines whose username no other object has, so that it gives nothing by itself. */
export const freeMachines = { ci: 'ci:free', bot: 'bot:free' } as const
const usernames: readonly string[] = [...names.users, ...Object.values(freeMachines)]
export const userObjects: readonly string[] = usernames.map(userObject)
/** The username of a User with this name; undefined: it is not from the pool. */
export const usernameOfObject = (name: string): string | undefined => usernames.find(one => userObject(one) === name)

const verbs = ['get', 'list', 'create', 'update', 'patch', 'delete', 'deletecollection', '*']
export const atom = (part: Partial<Atom>): Atom => ({
  verb: '',
  group: '',
  resource: '',
  sub: '',
  namespace: '',
  name: '',
  path: '',
  ...part,
})

function onKind({ group, plural, namespaced }: KindInfo, spaces: readonly string[], all: readonly string[]): Atom[] {
  const own = group === rbac && plural.endsWith('roles') ? [...verbs, 'escalate', 'bind'] : verbs
  return (namespaced ? spaces : ['']).flatMap(namespace =>
    ['', ...all].flatMap(name =>
      own
        .filter(verb => name === '' || (verb !== 'create' && verb !== 'list' && verb !== 'deletecollection'))
        .map(verb => atom({ verb, group, resource: plural, namespace, name })),
    ),
  )
}

const onSub = (
  resource: string,
  sub: string,
  asked: readonly string[],
  spaces: readonly string[],
  all: readonly string[],
) =>
  spaces.flatMap(namespace =>
    all.flatMap(name => asked.map(verb => atom({ verb, group: ours, resource, sub, namespace, name }))),
  )

/** The requests that give or take something in a connected cluster. `use`: having a role there, which the server never asks. */
const onClusters = (all: readonly string[], roles: readonly string[]): Atom[] => [
  ...['', ...all].flatMap(name =>
    ['deliver', 'impersonate'].map(verb => atom({ verb, group: ours, resource: 'clusters', name })),
  ),
  ...onSub('clusters', 'desired', ['get', 'watch'], [''], all),
  ...onSub('clusters', 'status', ['get', 'update', 'patch'], [''], all),
  ...onSub(
    'clusters',
    'clusterroles',
    ['bind', 'use'],
    [''],
    all.flatMap(name => roles.map(role => `${name}:${role}`)),
  ),
]

const impersonated = [...names.users, administrator]
export const impersonatedGroups: readonly string[] = [
  ...names.groups,
  ...names.teams.map(team => `platform:team:${team}`),
  'system:masters',
  'system:authenticated',
]

export const atoms: readonly Atom[] = [
  ...onKind(kinds.Team, [''], names.teams),
  ...onSub('teams', 'permissions', ['get'], [''], names.teams),
  ...onSub('teams', 'status', ['update', 'patch'], [''], names.teams),
  ...onKind(kinds.SharedSecret, names.namespaces, names.secrets),
  ...onSub('sharedsecrets', 'history', ['get'], names.namespaces, names.secrets),
  ...onSub('sharedsecrets', 'status', ['update'], names.namespaces, names.secrets),
  ...onKind(kinds.ProjectSecret, names.projects, names.secrets),
  ...onSub('projectsecrets', 'history', ['get'], names.projects, names.secrets),
  ...onKind(kinds.ClusterRole, [''], [...names.clusterRoles, builtIn]),
  ...onKind(kinds.ClusterRoleBinding, [''], [...names.clusterBindings, builtIn]),
  ...onKind(kinds.Role, names.namespaces, names.roles),
  ...onKind(kinds.RoleBinding, names.namespaces, names.bindings),
  ...onKind(kinds.OwnedAccessKey, [''], names.keys),
  ...onSub('ownedaccesskeys', 'rotate', ['create'], [''], names.keys),
  ...onKind(kinds.User, [''], userObjects),
  ...onSub('users', 'link', ['create'], [''], userObjects),
  ...onKind(kinds.Cluster, [''], names.clusters),
  ...onClusters(names.clusters, names.remoteRoles),
  ...['create', 'list', 'get'].map(verb => atom({ verb, group: ours, resource: 'tokenrevocations' })),
  ...impersonated.map(name => atom({ verb: 'impersonate', resource: 'users', name })),
  ...impersonatedGroups.map(name => atom({ verb: 'impersonate', resource: 'groups', name })),
  atom({ verb: '*', group: '*', resource: '*' }),
  atom({ verb: 'get', path: '/metrics' }),
  atom({ verb: 'post', path: '/debug/x' }),
]

export const noBits = (): Bits => new Uint32Array((atoms.length + 31) >>> 5)

export function bitsOf(covers: (atom: Atom) => boolean): Bits {
  const bits = noBits()
  for (const [index, one] of atoms.entries()) if (covers(one)) setBit(bits, index)
  return bits
}

export const everything: Bits = bitsOf(() => true)
export const hasBit = (bits: Bits, index: number): boolean =>
  ((bits[index >>> 5] as number) & (1 << (index & 31))) !== 0

export function setBit(bits: Bits, index: number): void {
  bits[index >>> 5] = (bits[index >>> 5] as number) | (1 << (index & 31))
}

export function addBits(into: Bits, from: Bits): void {
  for (let word = 0; word < into.length; word++) into[word] = (into[word] as number) | (from[word] as number)
}

export function bothBits(one: Bits, other: Bits): Bits {
  return one.map((word, index) => word & (other[index] as number))
}

/** The first atom that is in one set and in neither of the others; -1: none. */
export function firstBeyond(bits: Bits, allowed: Bits, exempt: Bits): number {
  for (let word = 0; word < bits.length; word++) {
    const beyond = (bits[word] as number) & ~(allowed[word] as number) & ~(exempt[word] as number)
    if (beyond !== 0) return word * 32 + 31 - Math.clz32(beyond)
  }
  return -1
}

type Named = { readonly bits: Bits; readonly indexes: readonly number[] }
const byObject = new Map<string, Named>()
for (const [index, { verb, resource, namespace, name }] of atoms.entries()) {
  if (verb === 'impersonate') continue
  const slot = `${resource}/${namespace}/${name}`
  const own = byObject.get(slot) ?? { bits: noBits(), indexes: [] as number[] }
  setBit(own.bits, index)
  byObject.set(slot, { ...own, indexes: [...own.indexes, index] })
}
const nothing: Named = { bits: noBits(), indexes: [] }

/** All requests that name one object. */
export const atomsOn = (resource: string, namespace: string, name: string): Named =>
  (name && byObject.get(`${resource}/${namespace}/${name}`)) || nothing

const indexes = new Map(atoms.map((one, index) => [JSON.stringify(one), index]))
/** The index of a request in the universe; -1: it is not in it. */
export const placeOf = (part: Partial<Atom>): number => indexes.get(JSON.stringify(atom(part))) ?? -1
/** The index of a request that must be in the universe. */
export function indexOf(part: Partial<Atom>): number {
  const index = placeOf(part)
  if (index < 0) throw new Error(`no such atom: ${JSON.stringify(part)}`)
  return index
}

/** The question for the server's authorizer about an atom. */
export const questions = atoms.map(({ verb, group, resource, sub, namespace, name, path }) =>
  path
    ? { verb, path }
    : {
        verb,
        target: { group, resource, namespace, ...(name ? { name } : {}), ...(sub ? { subresource: sub } : {}) },
      },
)

export const printAtom = ({ verb, resource, sub, namespace, name, path }: Atom): string =>
  path
    ? `${verb} ${path}`
    : `${verb} ${namespace ? `${namespace}/` : ''}${resource}${sub ? `/${sub}` : ''} ${name}`.trim()
