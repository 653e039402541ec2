// All permissions that a group of users can reach together: those of their secrets, and those that they can acquire with them (D14, D27).

import type { Credentials, Principal } from './credentials.ts'
import type { IdentityProvider } from './identity-provider.ts'
import type { Model } from './model.ts'
import { kinds, ours, rbac } from './objects.ts'
import type { Rights } from './permissions.ts'
import { type ReadScope, scopeBits } from './scopes.ts'
import { prefix, type SignIns } from './sign-ins.ts'
import {
  addBits,
  administrator,
  atoms,
  atomsOn,
  type Bits,
  bitsOf,
  bothBits,
  everything,
  hasBit,
  indexOf,
  names,
  noBits,
  setBit,
} from './universe.ts'

const allKeys = indexOf({ verb: '*', group: ours, resource: 'ownedaccesskeys' })
const masters = indexOf({ verb: 'impersonate', resource: 'groups', name: 'system:masters' })
const users = [...names.users, administrator].map(name => ({
  name,
  index: indexOf({ verb: 'impersonate', resource: 'users', name }),
}))
const groups = atoms.flatMap(({ verb, resource, name }, index) =>
  verb === 'impersonate' && resource === 'groups' ? [{ name, index }] : [],
)
/** Permissions on roles that allow acquiring the roles' permissions, or any. */
const powers = atoms.flatMap(({ verb, group, resource, namespace, name }, index) =>
  group === rbac && (verb === 'escalate' || verb === 'bind') ? [{ verb, resource, namespace, name, index }] : [],
)

/** Callers who may give a role of a connected cluster can take it (D69). */
const elsewhere = atoms.flatMap((one, index) =>
  one.sub === 'clusterroles' && one.verb === 'bind' ? [{ bind: index, use: indexOf({ ...one, verb: 'use' }) }] : [],
)
/** Callers with all of these on a cluster can create keys of its agent (D68). */
const asAgent = names.clusters.map(name =>
  [
    { verb: 'get', sub: 'desired' },
    { verb: 'watch', sub: 'desired' },
    { verb: 'update', sub: 'status' },
    { verb: 'patch', sub: 'status' },
  ].map(one => indexOf({ ...one, group: ours, resource: 'clusters', name })),
)
const agentRole = 'platform-gateway'

const links = atoms.flatMap(({ resource, sub }, index) => (resource === 'users' && sub === 'link' ? [index] : []))
const changesUsers = new Set(atoms.flatMap(({ verb }, index) => (verb === 'get' ? [] : [index])))

export type Reaching = {
  readonly model: Model
  readonly rights: Rights
  readonly credentials: Credentials
  readonly signIns: SignIns
  readonly provider: IdentityProvider
}
/** The secrets that the attackers know, and the accounts that they can sign in with. */
export type Means = { readonly secrets: Iterable<string>; readonly accounts: Iterable<string> }

export function reachOf(reaching: Reaching, { secrets, accounts }: Means): Bits {
  const { model, rights, credentials, signIns, provider } = reaching
  const reach = noBits()
  const seen = new Set<string>()
  const scopes = new Map<string, ReadScope>()
  const take = (principal: Principal, scope: ReadScope) =>
    addBits(reach, bothBits(rights.bitsOf(principal), scopeBits(scope)))
  for (const secret of secrets) {
    const found = credentials.of(secret)
    if (!found) continue
    scopes.set(JSON.stringify(found.scope ?? null), found.scope)
    take(found.principal, found.scope)
  }
  const asPerson = (account: string, username: string) => {
    const groups = provider.accounts[account]?.groups ?? []
    const sent = groups.map(group => `${prefix}${group}`)
    scopes.set('null', undefined)
    take(credentials.personOf(username, sent), undefined)
  }
  for (const account of accounts) {
    const username = signIns.usernameOf(account)
    if (username !== undefined) asPerson(account, username)
  }
  // Callers who may impersonate others may also get more from them: computed as a fixed point.
  for (let before = -1; before !== sizeOf(reach); ) {
    before = sizeOf(reach)
    if (hasBit(reach, allKeys) || hasBit(reach, masters)) return everything
    const asGroups = groups.filter(({ index }) => hasBit(reach, index)).map(({ name }) => name)
    for (const { name, index } of users) {
      if (!hasBit(reach, index)) continue
      for (const [text, scope] of scopes) {
        const word = `${name} ${asGroups.join()} ${text}`
        if (seen.has(word)) continue
        seen.add(word)
        take(credentials.principalOf(name, ['system:authenticated', ...asGroups]), scope)
      }
    }
    // The server knows the groups of a person only while they are signed in. Callers who may enable or link the User give them back.
    for (const account of accounts) {
      const { user, isLinkable } = signIns.accountOf(account) ?? {}
      const ways = [...(isLinkable ? links : []), ...atomsOn('users', '', user?.name ?? '').indexes]
      if (ways.some(index => changesUsers.has(index) && hasBit(reach, index))) asPerson(account, '')
    }
    for (const { bind, use } of elsewhere) if (hasBit(reach, bind)) setBit(reach, use)
    const agents = model.get(kinds.ClusterRole, '', agentRole)
    if (agents && asAgent.some(all => all.every(one => hasBit(reach, one)))) addBits(reach, rights.bitsOfRole(agents))
    for (const power of powers) if (hasBit(reach, power.index)) addBits(reach, takenBy(model, rights, power))
  }
  return reach
}

const sizeOf = (bits: Bits): number => bits.reduce((sum, word) => sum + popcount(word), 0)

function popcount(word: number): number {
  let count = 0
  for (let rest = word; rest !== 0; rest &= rest - 1) count++
  return count
}

const inNamespace = new Map(names.namespaces.map(one => [one as string, bitsOf(atom => atom.namespace === one)]))

function takenBy(model: Model, rights: Rights, power: (typeof powers)[number]): Bits {
  if (power.resource === 'roles') return inNamespace.get(power.namespace) ?? everything
  if (power.verb === 'escalate' || power.name === '') return everything
  const role = model.get(kinds.ClusterRole, '', power.name)
  // A role that does not exist, or is being deleted, may become anything.
  return role && !role.object.metadata.deletionTimestamp ? rights.bitsOfRole(role) : everything
}
