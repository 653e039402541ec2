// Random worlds for access tests: teams, secrets, keys, roles and bindings, and a server's evaluator over them.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { JsonObject } from '../../src/api/object.ts'
import { buildApiServer } from '../../src/apiserver/build.ts'
import { OwnedAccessKey } from '../../src/kinds/owned-access-key.ts'
import { ProjectSecret } from '../../src/kinds/project-secret.ts'
import { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '../../src/kinds/rbac.ts'
import { SharedSecret } from '../../src/kinds/shared-secret.ts'
import { Team } from '../../src/kinds/team.ts'
import { openStorage } from '../../src/storage/index.ts'
import type { Access, Key, Rule, Scope, World } from './evaluator.ts'

export const ours = 'management.platform.sh'
export const users = ['ada', 'bob', 'cy']
export const teamNames = ['red', 'blue', 'green']
export const spaces = ['default', 'p-web', 'p-ops']
const names = ['one', 'two', 'red', 'blue', 'r1', 'k1']
export const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', '*']

/** Small, fast and repeatable. */
export function dice(seed: number) {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T
  const some = <T>(list: readonly T[], most: number): T[] => [
    ...new Set(Array.from({ length: Math.floor(next() * (most + 1)) }, () => pick(list))),
  ]
  return { next, pick, some, chance: (of: number) => next() < of }
}
export type Dice = ReturnType<typeof dice>

export function makeWorld(die: Dice): World {
  const access = (): Access[] =>
    Array.from({ length: Math.floor(die.next() * 3) }, () => ({
      verbs: die.some(['get', 'update', 'delete', 'patch', '*'], 2).concat('get').slice(0, 2),
      subresources: die.some(['status', 'history', '*'], 1),
      users: die.some([...users, '*'], 2),
      teams: die.some(teamNames, 2),
    }))
  const owner = () => (die.chance(0.3) ? `team ${die.pick(teamNames)}` : die.pick([...users, 'nobody']))
  const rules = (): Rule[] =>
    Array.from({ length: 1 + Math.floor(die.next() * 2) }, () => ({
      verbs: die.some(verbs, 2).concat(die.pick(verbs)),
      apiGroups: [die.pick([ours, ours, ours, '*', 'other', 'rbac.authorization.k8s.io'])],
      resources: die
        .some(
          ['teams', 'sharedsecrets', 'projectsecrets', 'ownedaccesskeys', 'roles', '*', 'teams/status', '*/status'],
          2,
        )
        .concat(die.pick(['teams', 'sharedsecrets', 'projectsecrets'])),
      resourceNames: die.chance(0.4) ? die.some(names, 2) : [],
    }))
  const roles = [
    ...['', ...spaces].flatMap(namespace => ['r1', 'r2'].map(name => ({ namespace, name, rules: rules() }))),
  ]
  const bindings = Array.from({ length: 6 }, () => {
    const namespace = die.pick(['', '', ...spaces])
    const groups = die.some(
      ['dev', 'system:authenticated', ...teamNames.map(team => `platform:team:${team}`), 'platform:user:ada'],
      1,
    )
    return {
      namespace,
      role: die.pick(['r1', 'r2']),
      ofNamespace: namespace !== '' && die.chance(0.5),
      users: die.some(users, 1),
      groups: die.chance(0.15) ? groups : groups.filter(group => group !== 'system:authenticated'),
    }
  })
  const scope = (): Scope | undefined =>
    die.chance(0.6)
      ? undefined
      : {
          ...(die.chance(0.4) ? { projects: die.some(['web', 'ops', '*'], 2) } : {}),
          ...(die.chance(0.2) ? { clusters: ['c1'] } : {}),
          ...(die.chance(0.3)
            ? {
                roles: [
                  die.pick([
                    { role: 'platform-cli', projects: die.some(['web', '*'], 1) },
                    { role: 'agent', projects: [] },
                    { role: 'metrics-reader', projects: [] },
                  ]),
                ],
              }
            : {}),
          ...(die.chance(0.4)
            ? {
                rules: [
                  {
                    verbs: die.some(['get', 'list', 'update'], 2),
                    resources: die.chance(0.5)
                      ? [
                          {
                            group: ours,
                            resources: die.some(['teams', 'sharedsecrets', 'teams/*'], 2).concat('projectsecrets'),
                            resourceNames: die.chance(0.3) ? die.some(names, 2) : [],
                          },
                        ]
                      : [],
                    namespaces: die.chance(0.3) ? die.some(['', ...spaces], 2) : [],
                    requestTargets: die.chance(0.2) ? [die.pick(['Management', 'Cluster'])] : [],
                  },
                ],
              }
            : {}),
          ...(die.chance(0.15) ? { allowPlatformCli: true } : {}),
        }
  const keys: Key[] = Array.from({ length: 6 }, (_, index) => {
    const ofTeam = die.chance(0.25)
    const made = scope()
    return {
      name: `k${index}`,
      user: ofTeam ? '' : die.pick(users),
      team: ofTeam ? die.pick(teamNames) : '',
      groups: die.some(['dev', 'ops'], 1),
      ...(made ? { scope: made } : {}),
    }
  })
  return {
    teams: teamNames
      .filter(() => die.chance(0.8))
      .map(name => ({
        name,
        users: die.some(users, 2),
        groups: die.some(['dev', 'ops'], 1),
        owner: owner(),
        access: access(),
      })),
    secrets: spaces.flatMap(namespace =>
      ['one', 'two'].flatMap(name =>
        (['sharedsecrets', 'projectsecrets'] as const)
          .filter(kind => kind === 'sharedsecrets' || namespace !== 'default')
          .map(kind => ({ kind, namespace, name, owner: owner(), access: access() })),
      ),
    ),
    keys,
    roles,
    bindings,
  }
}

const ownerSpec = (owner: string) => (owner.startsWith('team ') ? { team: owner.slice(5) } : { user: owner })
const scopeSpec = (scope: Scope): JsonObject => ({
  ...scope,
  ...(scope.projects ? { projects: scope.projects.map(project => ({ project })) } : {}),
  ...(scope.clusters ? { clusters: scope.clusters.map(cluster => ({ cluster })) } : {}),
})

export async function build(world: World) {
  const storage = await openStorage({ engine: 'memory', directory: '', now: Date.now })
  const apiServer = buildApiServer({
    storage,
    keys: [{ id: 'test', key: randomBytes(32) }],
    now: Date.now,
    failed: (_, error) => assert.fail(String(error)),
  })
  await apiServer.ready
  const internalClient = apiServer.registry.internalClient
  const api = 'rbac.authorization.k8s.io'
  const secrets = new Map<string, string>()
  await Promise.all([
    ...world.teams.map(({ name, owner, ...spec }) =>
      internalClient.create(Team, '', { metadata: { name }, spec: { ...spec, owner: ownerSpec(owner) } }),
    ),
    ...world.secrets.map(({ kind, namespace, name, owner, access }) =>
      internalClient.create(kind === 'sharedsecrets' ? SharedSecret : ProjectSecret, namespace, {
        metadata: { name },
        spec: { access, owner: ownerSpec(owner) },
      }),
    ),
    ...world.roles.map(({ namespace, name, rules }) =>
      internalClient.create(namespace ? Role : ClusterRole, namespace, { metadata: { name }, rules }),
    ),
    ...world.bindings.map(({ namespace, role, ofNamespace, users: named, groups }, index) =>
      internalClient.create(namespace ? RoleBinding : ClusterRoleBinding, namespace, {
        metadata: { name: `b${index}` },
        roleRef: { apiGroup: api, kind: ofNamespace ? 'Role' : 'ClusterRole', name: role },
        subjects: [
          ...named.map(name => ({ apiGroup: api, kind: 'User', name })),
          ...groups.map(name => ({ apiGroup: api, kind: 'Group', name })),
        ],
      }),
    ),
    ...world.keys.map(async ({ name, user, team, groups, scope }) => {
      const { object } = await internalClient.create(OwnedAccessKey, '', {
        metadata: { name },
        spec: { ...(user ? { user } : { team }), groups, ...(scope ? { scope: scopeSpec(scope) } : {}) },
      })
      secrets.set(name, (object.spec as { key: string }).key)
    }),
  ])
  return { apiServer, storage, secrets }
}
