// Builds a new world: users with few permissions, objects with shared names, and the prerequisites of each chosen attack.

import { clusterGift } from './build-clusters.ts'
import { bind, type Gift, hand, make, rule } from './build-objects.ts'
import {
  accessEntry,
  draft,
  groupSubject,
  owner,
  scope,
  smallRule,
  subject,
  usernameOf,
  userSubject,
} from './drafts.ts'
import type { Stage } from './generator-context.ts'
import type { Known } from './model.ts'
import { kinds, ours, type PolicyRule, rbac, type Spec, teamGroup } from './objects.ts'
import { exchange, issue, issueFor, openAccounts, signIn } from './sign-in-steps.ts'
import type { Family } from './step.ts'
import { administrator, chosenSecrets, freeMachines, names, userObject } from './universe.ts'

/** Creates the objects of a world as its administrator. */
export async function buildWorld(stage: Stage): Promise<void> {
  openAccounts(stage)
  await buildUsers(stage)
  await buildRoles(stage)
  await buildTeams(stage)
  await buildSecrets(stage)
  for (const [index, user] of stage.attackers.entries()) await equip(stage, user, index)
  await buildStrangers(stage)
}

async function buildRoles(stage: Stage): Promise<void> {
  const { chance } = stage
  for (const name of ['r0', 'r1', 'r2', 'agg0'])
    await make(stage, kinds.ClusterRole, '', name, draft(stage, kinds.ClusterRole, '', name))
  for (const namespace of names.namespaces)
    if (chance.is(0.6)) await make(stage, kinds.Role, namespace, 'q0', { rules: [smallRule(stage)] })
  await bind(stage, 'b0', chance.pick(['r0', 'r1', 'r2']), [subject(stage)])
  await bind(stage, 'b1', chance.pick(['r0', 'r1', 'r2']), [groupSubject(chance.pick(names.groups))])
}

async function buildUsers(stage: Stage): Promise<void> {
  const { chance, prover, attackers } = stage
  const { requiresUsers } = prover.server
  for (const username of names.users) {
    if (!chance.is(requiresUsers ? 0.8 : 0.3) && !(requiresUsers && attackers.includes(username))) continue
    const disabled = !attackers.includes(username) && chance.is(0.4) ? { disabled: true } : {}
    await make(stage, kinds.User, '', userObject(username), { spec: { username, ...disabled } })
  }
}

async function buildTeams(stage: Stage): Promise<void> {
  const { chance } = stage
  for (const name of names.teams)
    if (chance.is(0.8))
      await make(stage, kinds.Team, '', name, {
        spec: {
          owner: owner(stage),
          users: chance.some(names.users, 2),
          groups: chance.some(names.groups, 1),
          ...(chance.is(0.3) ? { access: [accessEntry(stage)] } : {}),
          ...(chance.is(0.2) ? { clusterRoles: [{ name: chance.pick(['r0', 'r1', 'r2']) }] } : {}),
        },
      })
}

async function buildSecrets(stage: Stage): Promise<void> {
  const { chance, prover } = stage
  const shared = () => ({ owner: owner(stage), ...(chance.is(0.5) ? { access: [accessEntry(stage)] } : {}) })
  for (const namespace of names.namespaces)
    for (const name of names.secrets)
      if (chance.is(0.6))
        await make(stage, kinds.SharedSecret, namespace, name, { spec: { ...shared(), data: prover.canaries.make() } })
  for (const name of names.secrets) {
    if (chance.is(0.4)) continue
    const source = chance.is(0.4) ? chance.any(prover.model.of(kinds.SharedSecret)) : undefined
    const own = { ...shared(), data: prover.canaries.make() }
    await make(stage, kinds.ProjectSecret, 'p-shop', name, { spec: source ? copyOf(source) : own })
  }
}

/** Its owner must be able to read the source, and the administrator is. */
const copyOf = ({ name, namespace }: Known): Spec => ({
  owner: { user: administrator },
  sharedSecretRef: { name, namespace },
})

/** Keys of users who are not attackers. Their secrets are checked as well. */
async function buildStrangers(stage: Stage): Promise<void> {
  const { chance, attackers, prover } = stage
  const others = names.users.filter(one => !attackers.includes(one))
  await make(stage, kinds.OwnedAccessKey, '', 'k9', { spec: { user: chance.pick(others) } })
  const team = chance.any(prover.model.of(kinds.Team))
  if (team) await make(stage, kinds.OwnedAccessKey, '', 'k8', { spec: { team: team.name } })
}

/** A credential, a few permissions, and the prerequisites of this world's attacks. */
async function equip(stage: Stage, user: string, index: number): Promise<void> {
  const { chance, prepared } = stage
  const rules: PolicyRule[] = [smallRule(stage)]
  for (const danger of prepared) rules.push(...(gifts[danger]?.rules?.(stage) ?? []))
  await make(stage, kinds.ClusterRole, '', `hat${index}`, { rules })
  await bind(stage, `hat${index}`, `hat${index}`, [userSubject(user)])
  const has = (danger: Family) => index === 0 && prepared.has(danger)
  const life = has('lifetime')
    ? { ttl: chance.pick([600, 3600, 7200]), ...(chance.is(0.2) ? { ttlAfterLastActivity: true } : {}) }
    : {}
  const confined = has('scoped-sharing') && chance.is(0.7) ? { scope: scope(stage) } : {}
  await hand(stage, `k${index}`, { user, ...life, ...confined })
  for (const danger of prepared) if (index === 0) await gifts[danger]?.objects?.(stage, user)
}

const write = ({ chance }: Stage) => ['get', chance.pick(['patch', 'update'])]
const author = ['create', 'update', 'patch', 'get']
const replace = ['create', 'delete', 'get']

/** Deletes a team, gives its group a role after that, and the attackers permission to impersonate the group. */
async function lendMissingGroup(stage: Stage, user: string): Promise<void> {
  const { chance, prover } = stage
  if (chance.is(0.5)) return
  const team = chance.pick(names.teams)
  if (prover.model.get(kinds.Team, '', team)) {
    const at = { kind: kinds.Team, namespace: '', name: team, sub: '', dryRun: false, what: 'deletion' } as const
    await prover.perform({ actor: 'admin', secret: prover.server.adminKey, method: 'delete', ...at })
  }
  const group = `${teamGroup}${team}`
  await make(stage, kinds.ClusterRole, '', 'crown-early', { rules: [rule(author, ours, 'sharedsecrets')] })
  await bind(stage, 'hat-early', 'crown-early', [groupSubject(group)])
  const mask = (resource: string, name: string) => ({
    verbs: ['impersonate'],
    apiGroups: [''],
    resources: [resource],
    resourceNames: [name],
  })
  const rules = [mask('users', chance.pick(names.users)), mask('groups', group)]
  await make(stage, kinds.ClusterRole, '', 'mask-early', { rules })
  await bind(stage, 'hat-mask', 'mask-early', [userSubject(user)])
}

const gifts: { readonly [danger in Family]?: Gift } = {
  aggregation: {
    rules: stage => [rule(write(stage), rbac, 'clusterroles')],
    objects: async (stage, user) => void (await bind(stage, 'b2', 'agg0', [userSubject(user)])),
  },
  impersonation: {
    rules: ({ chance }) => [
      { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: [chance.pick(names.users)] },
      {
        verbs: ['impersonate'],
        apiGroups: [''],
        resources: ['groups'],
        // A username of a team gives nothing, because permissions name teams by their names.
        resourceNames: chance.weighted([
          [2, [chance.pick(names.groups)]],
          [1, [`${teamGroup}${chance.pick(names.teams)}`]],
          [3, names.teams.map(team => `${teamGroup}${usernameOf(team)}`)],
        ]),
      },
    ],
    objects: async (stage, user) => {
      const { prover } = stage
      await lendMissingGroup(stage, user)
      for (const { name } of prover.model.of(kinds.Team)) {
        const body = { spec: { username: usernameOf(name) } }
        const at = { kind: kinds.Team, namespace: '', name, sub: '', dryRun: false, what: 'the username' } as const
        await prover.perform({ actor: 'admin', secret: prover.server.adminKey, method: 'merge', body, ...at })
      }
    },
  },
  'key-groups': {
    objects: async (stage, user) => {
      const { chance, prover } = stage
      const group = chance.pick(names.groups)
      const rules = [rule([...author, 'delete'], ours, 'sharedsecrets', 'projectsecrets', 'teams')]
      await make(stage, kinds.ClusterRole, '', 'crown', { rules })
      await bind(stage, 'b3', 'crown', [groupSubject(group)])
      const team = chance.pick(names.teams)
      if (prover.model.get(kinds.Team, '', team)) {
        const body = { spec: { owner: { user } } }
        const at = { kind: kinds.Team, namespace: '', name: team, sub: '', dryRun: false, what: 'the owner' } as const
        await prover.perform({ actor: 'admin', secret: prover.server.adminKey, method: 'merge', body, ...at })
        await make(stage, kinds.OwnedAccessKey, '', 'k7', { spec: { team, groups: [group] } })
      }
      await make(stage, kinds.OwnedAccessKey, '', 'k6', { spec: { user, groups: [group] } })
      if (chance.is(0.5)) await hand(stage, 'k5', { user, groups: [group], scope: scope(stage) })
    },
  },
  'reserved-labels': {
    rules: stage => [
      rule(write(stage), rbac, 'clusterroles', 'clusterrolebindings'),
      rule(write(stage), ours, 'teams'),
    ],
  },
  'scoped-sharing': {
    rules: () => [rule(['*'], ours, 'projectsecrets'), rule(author, rbac, 'roles', 'rolebindings')],
    objects: async (stage, user) => {
      await hand(stage, 'shop0', { user, scope: { projects: [{ project: 'shop' }] } })
      // The role allows reading metadata of everything that the user may read.
      await hand(stage, 'cli0', { user, scope: { roles: [{ role: 'platform-cli' }] } })
    },
  },
  ownership: {
    /** An owner also has the subresources. */
    rules: ({ chance }) => [rule(['*'], ours, chance.pick(['sharedsecrets', 'projectsecrets']))],
  },
  bindings: {
    rules: () => [rule(author, rbac, 'rolebindings', 'clusterrolebindings', 'roles')],
  },
  'team-names': {
    rules: () => [rule(replace, ours, 'teams')],
    objects: async (stage, user) => {
      const { chance, prover } = stage
      const team = chance.pick(names.teams)
      await bind(stage, 'hat-team', chance.pick(['r0', 'r1', 'r2']), [groupSubject(`platform:team:${team}`)])
      const isFree = prover.model.get(kinds.OwnedAccessKey, '', 'k4') === undefined
      if (isFree && prover.model.get(kinds.Team, '', team)) await hand(stage, 'k4', { team })
      if (prover.model.get(kinds.SharedSecret, 'default', 's0')) return
      const access = [{ verbs: ['get'], teams: [team] }]
      const spec = { owner: { user }, data: prover.canaries.make(), access }
      await make(stage, kinds.SharedSecret, 'default', 's0', { spec })
    },
  },
  lifetime: {
    /** A key that is limited in another way, and a credential without a limit. */
    objects: async (stage, user) => {
      const { chance } = stage
      const limit = chance.is(0.7) ? { scope: scope(stage) } : { disabled: true }
      await make(stage, kinds.OwnedAccessKey, '', 'k3', {
        spec: { user, ...limit, ...(chance.is(0.5) ? { ttl: chance.pick([900, 86_400]) } : {}) },
      })
      if (chance.is(0.5)) await hand(stage, 'long0', { user })
    },
  },
  users: {
    rules: ({ chance }) => [
      rule([...author, ...(chance.is(0.8) ? ['delete'] : [])], ours, 'users'),
      ...(chance.is(0.7) ? [rule(['create'], ours, 'users/link')] : []),
    ],
    /** A disabled machine and a disabled user, whose token and account the attackers have. */
    objects: async stage => {
      const { attackers, prover, chance } = stage
      if (chance.is(0.8)) await disabledMachine(stage)
      const account = names.accounts.find(one => !attackers.includes(`corp:${one}`))
      if (account === undefined) return
      prover.accounts.add(account)
      const username = `corp:${account}`
      await disable(stage, username)
      await bind(stage, 'hat-leaver', chance.pick(['r0', 'r1', 'r2', 'platform-viewer']), [userSubject(username)])
      // Somebody whom an account of the attackers could be linked to.
      const victim = names.users.find(one => !one.includes(':') && !attackers.includes(one))
      if (victim === undefined) return
      if (!prover.signIns.userOf(victim)) await make(stage, kinds.User, '', victim, { spec: { username: victim } })
      await bind(stage, 'hat-victim', chance.pick(['r0', 'platform-viewer']), [userSubject(victim)])
    },
  },
  sessions: {
    objects: async stage => {
      const { chance, prover, attackers } = stage
      const ownKeys = names.accounts.filter(one => attackers.includes(`corp:${one}`))
      const account = chance.pick(ownKeys.length ? ownKeys : names.accounts)
      // A person whose key the attackers have, but not the account, makes another key.
      if (ownKeys.length === 0 || chance.is(0.5)) prover.accounts.add(account)
      for (const one of names.accounts)
        Object.assign(prover.server.provider.accounts[one] ?? {}, { groups: ['dev', 'ops'] })
      const rules = [rule(author, ours, chance.pick(['sharedsecrets', 'projectsecrets', 'teams']))]
      await make(stage, kinds.ClusterRole, '', 'crown-corp', { rules })
      await bind(stage, 'hat-corp', 'crown-corp', [groupSubject(chance.pick(['corp:dev', 'corp:ops']))])
      const step = signIn(stage, account)
      if (step) await prover.signIn(step)
      const session = [...prover.credentials.secrets.keys()].find(
        one => prover.credentials.of(one)?.login !== undefined,
      )
      if (session === undefined || prover.model.get(kinds.OwnedAccessKey, '', 'k2')) return
      // A key that depends on the sign-in.
      const at = {
        kind: kinds.OwnedAccessKey,
        namespace: '',
        name: 'k2',
        sub: '',
        dryRun: false,
        what: 'creation',
      } as const
      const body = { metadata: { name: 'k2' }, spec: {} }
      const { shown } = await prover.perform({ actor: 'admin', secret: session, method: 'create', body, ...at })
      if (shown && prover.coalition.has(session)) prover.give(shown)
    },
  },
  machines: {
    objects: async stage => {
      const { prover, chance } = stage
      for (const next of [issue, exchange]) {
        const step = next(stage)
        if (step) await prover.signIn(step)
      }
      const exchanged = prover.model.of(kinds.OwnedAccessKey).find(one => prover.signIns.exchanged.has(one.uid))
      const user = exchanged?.object.spec?.user ?? 'bot:job'
      // Its user may disable and delete an exchanged key, and nothing else.
      const isFree = prover.model.get(kinds.OwnedAccessKey, '', 'k4') === undefined
      if (isFree && chance.is(0.8)) await hand(stage, 'k4', { user })
      // The administrator may disable it.
      const isKnown = prover.model.get(kinds.User, '', userObject(user)) !== undefined
      if (!isKnown && chance.is(0.6)) await make(stage, kinds.User, '', userObject(user), { spec: { username: user } })
    },
  },
  clusters: clusterGift,
  'brought-keys': {
    objects: async (stage, user) => {
      const { chance } = stage
      const [own = '', other = ''] = chosenSecrets
      await hand(stage, 'own0', { user, key: own, ...(chance.is(0.3) ? { ttl: 3600 } : {}) })
      await make(stage, kinds.OwnedAccessKey, '', 'own1', { spec: { user: chance.pick(names.users), key: other } })
    },
  },
  'secret-names': {
    rules: () => [rule(replace, ours, 'sharedsecrets')],
    objects: async stage => {
      const { prover, chance } = stage
      const source = chance.any(prover.model.of(kinds.SharedSecret))
      if (!source || prover.model.get(kinds.ProjectSecret, 'p-shop', 's2')) return
      await make(stage, kinds.ProjectSecret, 'p-shop', 's2', { spec: copyOf(source) })
    },
  },
}

/** A disabled machine whose token the attackers have. All machines of its issuer have a role. */
async function disabledMachine(stage: Stage): Promise<void> {
  const issuer = stage.chance.pick(['ci', 'bot'] as const)
  await disable(stage, freeMachines[issuer])
  const token = { issuer, subject: freeMachines[issuer].slice(issuer.length + 1), isTheirs: true, lifetime: 864_000 }
  await stage.prover.signIn(issueFor(stage, token))
  await make(stage, kinds.ClusterRole, '', 'crown-machine', { rules: [rule(author, ours, 'projectsecrets')] })
  await bind(stage, 'hat-machine', 'crown-machine', [groupSubject(`platform:issuer:${issuer}`)])
}

async function disable(stage: Stage, username: string): Promise<void> {
  const { prover } = stage
  const at = { kind: kinds.User, namespace: '', name: userObject(username), sub: '', dryRun: false } as const
  if (!prover.model.get(kinds.User, '', at.name)) await make(stage, kinds.User, '', at.name, { spec: { username } })
  const admin = { actor: 'admin', secret: prover.server.adminKey, what: 'the disabled flag' } as const
  await prover.perform({ ...admin, ...at, method: 'merge', body: { spec: { disabled: true } } })
}
