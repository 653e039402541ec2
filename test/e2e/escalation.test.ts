// A slice of the proof in test/prove/escalation: attackers in random worlds never reach more than they were given; and every check can fail.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Kind } from '../../src/api/kind.ts'
import type { Json, Ref } from '../../src/api/object.ts'
import { Cluster } from '../../src/kinds/cluster.ts'
import { OwnedAccessKey } from '../../src/kinds/owned-access-key.ts'
import { ProjectSecret } from '../../src/kinds/project-secret.ts'
import { ClusterRole, ClusterRoleBinding } from '../../src/kinds/rbac.ts'
import { Team } from '../../src/kinds/team.ts'
import { TokenRevocation } from '../../src/kinds/token-revocation.ts'
import { checkSilence } from '../prove/escalation/check-brought-keys.ts'
import { checkDesired } from '../prove/escalation/check-clusters.ts'
import { checkWholeBound } from '../prove/escalation/check-permissions.ts'
import { requestOf } from '../prove/escalation/encode.ts'
import type { Stage } from '../prove/escalation/generator-context.ts'
import { type KindInfo, kinds, type Obj, tokens, type Words } from '../prove/escalation/objects.ts'
import { openProver, type Prover } from '../prove/escalation/prover.ts'
import { runEscalation } from '../prove/escalation/run.ts'
import { openChance } from '../prove/escalation/seeded-choices.ts'
import { giveAgentToken, nameAgent, signIn } from '../prove/escalation/sign-in-steps.ts'
import { type Before, families, type Outcome, type Step } from '../prove/escalation/step.ts'
import { chosenSecrets, noAgent, noBits } from '../prove/escalation/universe.ts'
import { type Invariant, Violation } from '../prove/escalation/violation.ts'

// Always the same: `npm run prove` takes other seeds, and a change is not refused for what it did not touch.
const seed = process.env['PROVE_SEED'] ?? 'slice'
/** escalation.slow.test.ts takes more. */
const steps = 1500

test(`${steps} steps of attackers with random objects: they never gain permissions (seed ${seed})`, {
  timeout: 120_000,
}, async context => {
  const { worlds, dangers } = await runEscalation({ steps, seed })
  context.diagnostic(`${worlds} worlds, ${JSON.stringify(dangers)}`)
  for (const danger of families) assert.ok(dangers[danger] > 0, `${danger} was never tried`)
})

test('the model shares no code with the server', () => {
  const folder = join(import.meta.dirname, '../prove/escalation')
  const importing = globSync('**/*.ts', { cwd: folder }).filter(file =>
    /from '(\.\.\/)+src\//.test(readFileSync(join(folder, file), 'utf8')),
  )
  // These run the server and read its store.
  assert.deepEqual(importing.toSorted(), ['prover.ts', 'server.ts'])
})

const rbac = 'rbac.authorization.k8s.io'
const shop = { namespace: 'p-shop', name: 's0' }

describe('a check fails when', () => {
  let prover: Prover
  let eve: string
  before(async () => {
    prover = await openProver()
    await make(kinds.SharedSecret, 'default', 's0', { spec: { data: prover.canaries.make() } })
    await make(kinds.SharedSecret, 'default', 's1', { spec: { data: prover.canaries.make() } })
    await make(kinds.ProjectSecret, 'p-shop', 's0', {
      spec: { sharedSecretRef: { name: 's0', namespace: 'default' }, owner: { user: 'admin' } },
    })
    await make(kinds.ProjectSecret, 'p-shop', 's1', { spec: { owner: { user: 'eve' } } })
    eve = await give('k0', { user: 'eve' })
  })
  after(() => prover.close())

  const admin = (part: Partial<Step> & Pick<Step, 'kind' | 'name' | 'method'>) =>
    prover.perform({ ...stepBy('admin', prover.server.adminKey), ...part })
  async function make(kind: KindInfo, namespace: string, name: string, object: Partial<Obj>): Promise<string> {
    const { accepted, answer, shown } = await admin({
      kind,
      namespace,
      name,
      method: 'create',
      body: { metadata: { name }, ...object },
    })
    assert.ok(accepted, answer.text)
    return shown ?? ''
  }
  async function give(name: string, spec: NonNullable<Obj['spec']>): Promise<string> {
    const secret = await make(kinds.OwnedAccessKey, '', name, { spec })
    prover.give(secret)
    return secret
  }
  const stepBy = (actor: Step['actor'], secret: string): Step => ({
    actor,
    secret,
    kind: kinds.Team,
    namespace: '',
    name: 'red',
    sub: '',
    method: 'get',
    dryRun: false,
    what: 'a doctored step',
  })

  type Doctored = {
    readonly step?: Partial<Step>
    readonly known?: Partial<Before>
    readonly outcome?: Partial<Outcome>
    /** The claimed author of the changes. */
    readonly cause?: 'server' | 'request'
    /** A change that bypasses the model. */
    readonly tamper?: () => Promise<unknown>
  }
  async function breaks(
    invariant: Invariant,
    { step: part, known, outcome, cause = 'server', tamper }: Doctored,
  ): Promise<void> {
    const step = { ...stepBy('attacker', eve), ...part }
    const looked = { ...prover.lookBefore(step), ...known }
    await tamper?.()
    await prover.server.settle()
    const changes = prover.absorb(() => cause)
    const answer = { code: 200, text: '{}' }
    const came = {
      step,
      before: looked,
      request: requestOf(step),
      answer,
      accepted: false,
      changes,
      shown: undefined,
      ...outcome,
    }
    assert.throws(() => prover.check(came), isBroken(invariant))
    prover.give(eve)
  }
  /** As the server itself. */
  async function relabel(kind: Kind, ref: Ref, labels: Words): Promise<void> {
    const { object } = await prover.server.apiServer.opened.get(kind, ref)
    const next = { ...object, metadata: { ...object.metadata, labels } }
    await prover.server.apiServer.opened.update(kind, ref, next as unknown as Json)
  }
  const isBroken = (invariant: Invariant) => (error: unknown) => {
    assert.ok(error instanceof Violation, String(error))
    assert.equal(error.invariant, invariant, error.message)
    return true
  }

  test('attackers gain a permission', () => {
    const roleRef = { apiGroup: rbac, kind: 'ClusterRole', name: 'platform-viewer' }
    const subjects = [{ apiGroup: rbac, kind: 'User', name: 'eve' }]
    return breaks('conservation', {
      tamper: () =>
        prover.server.apiServer.internalClient.create(ClusterRoleBinding, '', {
          metadata: { name: 'b0' },
          roleRef,
          subjects,
        }),
    })
  })

  test('the server allows what the model denies', async () => {
    const step = { kind: kinds.SharedSecret, namespace: 'default', name: 's0' }
    await breaks('bound', { step, outcome: { accepted: true } })
    const { decide } = prover.server
    prover.server.decide = () => () => ({ allowed: true, reason: 'doctored' })
    assert.throws(() => checkWholeBound(prover), isBroken('bound'))
    prover.server.decide = decide
  })

  test('a key or a token is created while impersonating', async () => {
    const as = { user: 'ada', groups: [] }
    const outcome = { accepted: true }
    const known = { allowed: true }
    const key = { as, kind: kinds.OwnedAccessKey, name: 'k1', method: 'create' } as const
    await breaks('impersonation', { step: key, known, outcome })
    await breaks('impersonation', { step: { ...key, sub: 'rotate' }, known, outcome })
    await breaks('impersonation', { step: { ...key, dryRun: true }, known, outcome: { ...outcome, shown: 'plat_x' } })
    await breaks('impersonation', { step: { as, kind: tokens, name: '', method: 'create' }, known, outcome })
  })

  test('a key outlives the credential that created it', async () => {
    const secret = await give('k2', { user: 'eve', ttl: 60 })
    const step = { secret, kind: kinds.OwnedAccessKey, name: 'k3', method: 'create' } as const
    await breaks('lifetime', {
      step,
      cause: 'request',
      outcome: { accepted: true },
      tamper: () =>
        prover.server.apiServer.internalClient.create(OwnedAccessKey, '', {
          metadata: { name: 'k3' },
          spec: { user: 'eve' },
        }),
    })
  })

  test('a copy has data of another source', async () => {
    const foreign = JSON.stringify(prover.canaries.make())
    prover.canaries.planted(foreign, prover.model.get(kinds.SharedSecret, 'default', 's1')?.uid ?? '')
    const { dataOf } = prover
    prover.dataOf = () => foreign
    await breaks('data flow', { cause: 'request', tamper: () => relabel(ProjectSecret, shop, { tier: 'a' }) })
    prover.dataOf = dataOf
  })

  test('a token outlives its secret', async () => {
    const secret = await give('k5', { user: 'eve' })
    const minted = {
      ...stepBy('attacker', secret),
      kind: tokens,
      name: '',
      method: 'create',
      body: { spec: {} },
    } as const
    assert.ok((await prover.perform(minted)).accepted)
    const { internalClient } = prover.server.apiServer
    await breaks('tokens', {
      cause: 'request',
      tamper: async () => {
        await internalClient.delete(OwnedAccessKey, { namespace: '', name: 'k5' })
        const { items } = await internalClient.list(TokenRevocation)
        for (const { ref } of items) await internalClient.delete(TokenRevocation, ref)
      },
    })
    prover.credentials.tokens.length = 0
  })

  test('an object disappears, changes, or gets a reserved label', async () => {
    const role = { namespace: '', name: 'platform-viewer' }
    const { internalClient } = prover.server.apiServer
    await breaks('objects', { tamper: () => relabel(ClusterRole, role, { mine: 'yes' }) })
    const step = { kind: kinds.ClusterRole, name: role.name, method: 'merge' } as const
    const written = { step, known: { allowed: true }, cause: 'request', outcome: { accepted: true } } as const
    await breaks('objects', { ...written, tamper: () => relabel(ClusterRole, role, { 'platform.sh/mirrors': 'x' }) })
    await breaks('objects', { tamper: () => internalClient.delete(ClusterRole, role) })
  })

  test('a response shows data or a secret', async () => {
    const foreign = JSON.stringify(prover.canaries.make())
    prover.canaries.planted(foreign, prover.model.get(kinds.SharedSecret, 'default', 's1')?.uid ?? '')
    await breaks('answers', { outcome: { answer: { code: 403, text: foreign } } })
    await breaks('answers', { outcome: { answer: { code: 200, text: `"${prover.server.adminKey}"` } } })
  })

  test('a machine creates a key, or a key claims to be a session or to depend on one', async () => {
    const { internalClient } = prover.server.apiServer
    const create = (name: string, spec: Json) =>
      internalClient.create(OwnedAccessKey, '', { metadata: { name }, spec: { user: 'eve', ...(spec as object) } })
    const at = { kind: kinds.OwnedAccessKey, name: 'k7', method: 'create' } as const
    const made = { cause: 'request', outcome: { accepted: true } } as const
    const allowed = { allowed: true, administers: false }
    const { credential } = prover.lookBefore(stepBy('attacker', eve))
    assert.ok(credential)
    const machine = { ...allowed, credential: { ...credential, isMachine: true } }
    await breaks('machines', { ...made, step: at, known: machine, tamper: () => create('k7', {}) })
    const session = { ...at, name: 'k8' }
    await breaks('sign-ins', { ...made, step: session, known: allowed, tamper: () => create('k8', { type: 'Login' }) })
    const child = { ...at, name: 'k9' }
    await breaks('sign-ins', { ...made, step: child, known: allowed, tamper: () => create('k9', { parent: 'k0' }) })
  })

  test('the model follows a sign-in: its groups, the keys created with it, and its end', async () => {
    const { provider } = prover.server
    provider.accounts['pia'] = { groups: ['dev'], isEnabled: true }
    prover.accounts.add('pia')
    const stage = { prover, chance: openChance('sign-in') } as unknown as Stage
    const step = signIn({ ...stage, chance: { ...stage.chance, pick: list => list[0] as (typeof list)[number] } })
    assert.ok(step)
    await prover.signIn(step)
    const session = [...prover.coalition].findLast(one => prover.credentials.of(one)?.login !== undefined) ?? ''
    const key = { ...stepBy('attacker', session), kind: kinds.OwnedAccessKey, name: 'k4', method: 'create' } as const
    const { shown = '' } = await prover.perform({ ...key, body: { metadata: { name: 'k4' }, spec: {} } })
    const groups = () => prover.credentials.of(shown)?.principal.groups
    assert.ok(groups()?.has('corp:dev'), 'the key has the groups of the sign-in')
    provider.accounts['pia'] = { groups: [], isEnabled: true }
    await prover.wait(700)
    assert.ok(groups() && !groups()?.has('corp:dev'), 'the key lost the group')
    provider.accounts['pia'] = { groups: [], isEnabled: false }
    await prover.wait(700)
    for (const secret of [session, shown]) {
      assert.equal(prover.credentials.of(secret), undefined)
      assert.equal(prover.server.decide(secret), undefined, 'the server suspended the sign-in')
    }
  })

  test('a connected cluster gets more than the model allows, or because of somebody who may not send it', async () => {
    const projects = [{ project: 'shop', namespaces: ['shop'] }]
    await make(kinds.Cluster, '', 'c0', { spec: { projects } })
    await make(kinds.Team, '', 'red', {})
    const clusters = { names: ['c0'] }
    const deliver = [{ clusters }]
    await make(kinds.ProjectSecret, 'p-shop', 's2', { spec: { data: prover.canaries.make(), deliver } })
    const { flows, graces } = prover
    assert.equal([...flows.values()].filter(({ uid, namespace }) => uid && namespace === 'shop').length, 1)
    await checkDesired(prover, false)
    prover.flows = new Map()
    await assert.rejects(checkDesired(prover, false), isBroken('delivery'))
    prover.flows = flows
    const { bitsOf } = prover.rights
    prover.rights.bitsOf = () => noBits()
    await assert.rejects(checkDesired(prover, false), isBroken('delivery'))
    prover.rights.bitsOf = bitsOf
    graces.clear()
    const { opened } = prover.server.apiServer
    const written = { known: { allowed: true }, cause: 'request', outcome: { accepted: true } } as const
    const write = (kind: Kind, ref: Ref, spec: object) => async () => {
      const { object } = await opened.get(kind, ref)
      await opened.update(kind, ref, { ...object, spec: { ...object.spec, ...spec } } as unknown as Json)
    }
    const at = (kind: KindInfo, namespace: string, name: string) =>
      ({ kind, namespace, name, method: 'merge' }) as const
    await breaks('delivery', {
      ...written,
      step: at(kinds.Team, '', 'red'),
      tamper: write(Team, { namespace: '', name: 'red' }, { clusterRoles: [{ name: 'view', clusters }] }),
    })
    await breaks('delivery', {
      ...written,
      step: at(kinds.ProjectSecret, 'p-shop', 's1'),
      tamper: write(ProjectSecret, { namespace: 'p-shop', name: 's1' }, { deliver }),
    })
    await breaks('delivery', {
      ...written,
      step: at(kinds.Cluster, '', 'c0'),
      tamper: write(Cluster, { namespace: '', name: 'c0' }, { gateway: { url: 'https://eve.test' } }),
    })
  })

  test('a token of an agent reads from another cluster than its own, or does not read everything of its own', async () => {
    const { server, signIns, model } = prover
    await make(kinds.Cluster, '', 'c1', { spec: {} })
    const first = <T>(list: readonly T[]) => list[0] as T
    const chance = { ...openChance('agent'), is: () => true, pick: first, any: first }
    const stage = { prover, chance, prepared: new Set(['clusters']) } as unknown as Stage
    for (const next of [nameAgent, giveAgentToken]) {
      const step = next(stage)
      assert.ok(step)
      await prover.signIn(step)
    }
    const { agent } = signIns
    assert.equal(agent.uid, model.get(kinds.Cluster, '', 'c0')?.uid)
    signIns.agent = { cluster: 'c1', uid: model.get(kinds.Cluster, '', 'c1')?.uid ?? '' }
    await assert.rejects(checkDesired(prover, false), isBroken('delivery'))
    signIns.agent = agent
    await checkDesired(prover, false)
    server.nameAgent(noAgent)
    await assert.rejects(checkDesired(prover, false), isBroken('delivery'))
    server.nameAgent(agent)
    await checkDesired(prover, false)
  })

  test('a user chooses a secret, two keys have the same one, or a dry run tells whether it exists', async () => {
    const [key = '', other = ''] = chosenSecrets
    const chosen = { kind: kinds.OwnedAccessKey, name: 'own2', method: 'create', body: { spec: { key } } } as const
    await breaks('brought keys', { step: chosen, known: { allowed: true }, outcome: { accepted: true } })
    await make(kinds.OwnedAccessKey, '', 'own0', { spec: { user: 'eve', key } })
    await make(kinds.OwnedAccessKey, '', 'own1', { spec: { user: 'bob', key: other } })
    const [one, two] = ['own0', 'own1'].map(name => prover.model.get(kinds.OwnedAccessKey, '', name))
    assert.ok(one?.object.status && two)
    const after = { ...two, object: { ...two.object, status: one.object.status } }
    const changes = [{ type: 'updated', before: two, after, cause: 'request' }] as const
    await breaks('brought keys', { known: { allowed: true }, outcome: { accepted: true, changes } })
    const dry = { ...stepBy('admin', prover.server.adminKey), ...chosen, dryRun: true }
    const body = { metadata: { name: 'own2' }, spec: { user: 'eve', key } }
    const outcome = await prover.perform({ ...dry, body })
    assert.ok(outcome.accepted, outcome.answer.text)
    const refused = { ...outcome, accepted: false, answer: { code: 422, text: '' } }
    await assert.rejects(checkSilence(prover, refused), isBroken('brought keys'))
  })

  test('the model follows a chosen secret from a deleted key to the next one', async () => {
    const [key = ''] = chosenSecrets
    const holder = () => prover.credentials.of(key)?.principal.username
    assert.equal(holder(), 'eve')
    const minted = { ...stepBy('attacker', key), kind: tokens, name: '', method: 'create', body: { spec: {} } } as const
    assert.ok((await prover.perform(minted)).accepted)
    assert.ok((await admin({ kind: kinds.OwnedAccessKey, name: 'own0', method: 'delete' })).accepted)
    assert.equal(holder(), undefined)
    await make(kinds.OwnedAccessKey, '', 'own2', { spec: { user: 'bob', key } })
    assert.equal(holder(), 'bob')
    const { internalClient } = prover.server.apiServer
    await breaks('tokens', {
      tamper: async () => {
        const { items } = await internalClient.list(TokenRevocation)
        for (const { ref } of items) await internalClient.delete(TokenRevocation, ref)
      },
    })
    prover.credentials.tokens.length = 0
  })

  test('a scoped key shares an object', async () => {
    const secret = await give('k6', { user: 'eve', scope: { projects: [{ project: 'shop' }] } })
    const at = { namespace: 'p-shop', name: 's1' }
    await breaks('scoped keys', {
      step: { secret, kind: kinds.ProjectSecret, ...at, method: 'merge' },
      cause: 'request',
      outcome: { accepted: true },
      tamper: async () => {
        const { object } = await prover.server.apiServer.opened.get(ProjectSecret, at)
        const access = [{ verbs: ['get'], users: ['bob'] }]
        await prover.server.apiServer.opened.update(ProjectSecret, at, {
          ...object,
          spec: { ...object.spec, access },
        } as never)
      },
    })
  })
})
