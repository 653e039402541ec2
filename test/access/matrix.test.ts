// The authorizer against a second one, on random worlds: kinds × verbs × subresources × names × namespaces × scopes × rules × graphs.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { ApiError } from '../../src/api/errors.ts'
import type { Question } from '../../src/api/kind.ts'
import type { JsonObject } from '../../src/api/object.ts'
import type { Judgement } from '../../src/api/permissions.ts'
import { type House, openHouse } from '../../src/bin/house.ts'
import { OwnedAccessKey } from '../../src/kinds/owned-access-key.ts'
import { ProjectSecret } from '../../src/kinds/project-secret.ts'
import { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '../../src/kinds/rbac.ts'
import { SharedSecret } from '../../src/kinds/shared-secret.ts'
import { Team } from '../../src/kinds/team.ts'
import { openStorage } from '../../src/storage/index.ts'
import { type Access, type Ask, type Key, mayDo, type Rule, type Scope, type World } from './evaluator.ts'

const worlds = 250
const asksPerWorld = 420
const ours = 'management.platform.sh'
const users = ['ada', 'bob', 'cy']
const teamNames = ['red', 'blue', 'green']
const spaces = ['default', 'p-web', 'p-ops']
const names = ['one', 'two', 'red', 'blue']
const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', '*']

/** Small, fast and repeatable. */
function dice(seed: number) {
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
type Dice = ReturnType<typeof dice>

function makeWorld(die: Dice): World {
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
      apiGroups: [die.pick([ours, ours, ours, '*', 'other'])],
      resources: die
        .some(['teams', 'sharedsecrets', 'projectsecrets', 'ownedaccesskeys', '*', 'teams/status', '*/status'], 2)
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
                  { role: die.pick(['platform-cli', 'agent', 'workspace']), projects: die.some(['web', '*'], 1) },
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

async function build(world: World) {
  const storage = await openStorage({ engine: 'memory', directory: '', now: Date.now })
  const house = openHouse({
    storage,
    keys: [{ id: 'test', key: randomBytes(32) }],
    now: Date.now,
    failed: (_, error) => assert.fail(String(error)),
  })
  await house.ready
  const inside = house.registry.inside
  const api = 'rbac.authorization.k8s.io'
  const secrets = new Map<string, string>()
  await Promise.all([
    ...world.teams.map(({ name, owner, ...spec }) =>
      inside.create(Team, '', { metadata: { name }, spec: { ...spec, owner: ownerSpec(owner) } }),
    ),
    ...world.secrets.map(({ kind, namespace, name, owner, access }) =>
      inside.create(kind === 'sharedsecrets' ? SharedSecret : ProjectSecret, namespace, {
        metadata: { name },
        spec: { access, owner: ownerSpec(owner) },
      }),
    ),
    ...world.roles.map(({ namespace, name, rules }) =>
      inside.create(namespace ? Role : ClusterRole, namespace, { metadata: { name }, rules }),
    ),
    ...world.bindings.map(({ namespace, role, ofNamespace, users: named, groups }, index) =>
      inside.create(namespace ? RoleBinding : ClusterRoleBinding, namespace, {
        metadata: { name: `b${index}` },
        roleRef: { apiGroup: api, kind: ofNamespace ? 'Role' : 'ClusterRole', name: role },
        subjects: [
          ...named.map(name => ({ apiGroup: api, kind: 'User', name })),
          ...groups.map(name => ({ apiGroup: api, kind: 'Group', name })),
        ],
      }),
    ),
    ...world.keys.map(async ({ name, user, team, groups, scope }) => {
      const { object } = await inside.create(OwnedAccessKey, '', {
        metadata: { name },
        spec: { ...(user ? { user } : { team }), groups, ...(scope ? { scope: scopeSpec(scope) } : {}) },
      })
      secrets.set(name, (object.spec as { key: string }).key)
    }),
  ])
  return { house, storage, secrets }
}

function makeAsk(die: Dice): Ask {
  const resource = die.pick([
    'teams',
    'sharedsecrets',
    'projectsecrets',
    'ownedaccesskeys',
    'sharedsecrets',
    'projectsecrets',
  ])
  const spaced = resource === 'sharedsecrets' || resource === 'projectsecrets'
  const name = die.chance(0.25)
    ? ''
    : resource === 'ownedaccesskeys'
      ? `k${Math.floor(die.next() * 7)}`
      : die.pick(resource === 'teams' ? [...teamNames, 'none'] : ['one', 'two', 'none'])
  return {
    verb: die.pick(verbs),
    group: die.chance(0.95) ? ours : 'other',
    resource,
    sub: die.chance(0.15) ? die.pick(['status', 'history', 'permissions', 'rotate']) : '',
    namespace: spaced && die.chance(0.95) ? die.pick(spaces) : '',
    name,
  }
}

/** As a request is judged: a key that is not let in may do nothing. */
function judge({ authenticate, authorizer }: House, authorization: string, question: Question): Judgement {
  try {
    return authorizer.judge(authenticate(authorization), question)
  } catch (error) {
    assert.ok(error instanceof ApiError && error.code === 401, String(error))
    return { allowed: false, reason: error.message }
  }
}

test(`two evaluators agree on ${worlds * asksPerWorld} random requests, at least 30% allowed and 30% denied (D25–D27)`, async () => {
  const seed = Number(process.env['MATRIX_SEED'] ?? Date.now() % 1e9)
  const count = { allowed: 0, denied: 0 }
  for (let index = 0; index < worlds; index++) {
    const die = dice(seed + index)
    const world = makeWorld(die)
    const { house, storage, secrets } = await build(world)
    for (let each = 0; each < asksPerWorld; each++) {
      const key = die.pick(world.keys)
      const ask = makeAsk(die)
      const expected = mayDo(world, key, ask)
      // Denials are the larger part of the world: enough of them are passed over for both to weigh.
      if (!expected && die.chance(0.6)) {
        each--
        continue
      }
      const { verb, sub, name, group, resource, namespace } = ask
      const target = { group, resource, namespace, ...(name ? { name } : {}), ...(sub ? { subresource: sub } : {}) }
      const actual = judge(house, `Bearer ${secrets.get(key.name)}`, { verb, target })
      assert.equal(
        actual.allowed,
        expected,
        `seed ${seed}, world ${index}: ${JSON.stringify({ ask, key, reason: actual.reason })}\n${JSON.stringify(world)}`,
      )
      count[actual.allowed ? 'allowed' : 'denied']++
    }
    house.stop()
    await storage.close()
  }
  const share = count.allowed / (count.allowed + count.denied)
  assert.ok(share >= 0.3 && share <= 0.7, `${Math.round(share * 100)}% were allowed`)
})
