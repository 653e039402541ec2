// One world under test: the server, the model, the attackers' secrets, and the checks after every step.

import { ProjectSecret } from '../../../src/kinds/project-secret.ts'
import type { Cursor } from '../../../src/storage/store.ts'
import type { HttpAnswer } from '../../support/direct-http.ts'
import { type Canaries, openCanaries } from './canaries.ts'
import { checkBroughtKeys, checkSilence, chosenIn } from './check-brought-keys.ts'
import { checkDesired, checkFlows, type Graces } from './check-clusters.ts'
import { checkCredentials, checkTokens } from './check-credentials.ts'
import { checkAnswer, checkData } from './check-data.ts'
import { checkObjects, checkScopedKeys } from './check-objects.ts'
import { checkBound, checkConservation, checkRequest } from './check-permissions.ts'
import { type Credentials, openCredentials, type Token } from './credentials.ts'
import { requestOf } from './encode.ts'
import { type Flows, flowsOf } from './flows.ts'
import { impersonated, mayImpersonate } from './impersonation.ts'
import { type Cause, type Model, openModel, type StoreChange } from './model.ts'
import { bucketOf, kinds, type Obj, ours, slotOf, tokens } from './objects.ts'
import { openRights, type Rights } from './permissions.ts'
import { reachOf } from './reachable-permissions.ts'
import { scopeBits, scopeCovers } from './scopes.ts'
import { type EscalationServer, openEscalationServer } from './server.ts'
import { openSignIns, type SignIns } from './sign-ins.ts'
import { askOf, type Before, type Change, type Outcome, type SignInStep, type Step } from './step.ts'
import { type Atom, type Bits, bothBits, noBits } from './universe.ts'

export type Prover = {
  readonly server: EscalationServer
  readonly model: Model
  readonly credentials: Credentials
  readonly rights: Rights
  readonly signIns: SignIns
  readonly canaries: Canaries
  /** The secrets that attackers know. */
  readonly coalition: Set<string>
  /** The accounts at the provider that attackers can sign in with. */
  readonly accounts: Set<string>
  /** The permissions that the attackers could reach after the last step. */
  reach: Bits
  /** Everything that flowed to connected clusters after the last step. */
  flows: Flows
  /** Owners who lost a permission because time passed. */
  readonly graces: Graces
  /** The next item to check, for checks that take turns. */
  turn: number
  /** The model's prediction before a request is sent. */
  lookBefore(step: Step): Before
  /** Sends a request, updates the model and checks every invariant. */
  perform(step: Step): Promise<Outcome>
  /** Takes a step of sign-in, updates the model and checks. */
  signIn(step: SignInStep): Promise<void>
  /** Gives the attackers a secret, on behalf of an honest user. */
  give(secret: string): void
  /** Moves the clock and checks. */
  wait(seconds: number): Promise<void>
  /** Stored changes that the model has not processed yet. */
  absorb(cause: (change: StoreChange) => Cause): Change[]
  /** Checks the outcome of a step. */
  check(outcome: Outcome): void
  /** The data of a ProjectSecret as the server would return it. */
  dataOf(namespace: string, name: string): string
  close(): Promise<void>
}

/** The questions of every atom cover permissions on all access keys (D14). */
const allKeys: Atom = {
  verb: '*',
  group: ours,
  resource: 'ownedaccesskeys',
  sub: '',
  namespace: '',
  name: '',
  path: '',
}

export async function openProver(requiresUsers = false): Promise<Prover> {
  const server = await openEscalationServer(requiresUsers)
  const model = openModel()
  const { provider, now } = server
  const signIns = openSignIns({ model, provider, requiresUsers, now })
  const credentials = openCredentials(model, signIns, now)
  const rights = openRights(model)
  const canaries = openCanaries()
  const coalition = new Set<string>()
  const accounts = new Set<string>()
  const cursors: Cursor[] = Object.values(kinds).map(kind => server.storage.store.watch(bucketOf(kind), 1))

  function absorb(causeOf: (change: StoreChange) => Cause): Change[] {
    const events = cursors.flatMap(cursor => cursor.take(Number.POSITIVE_INFINITY))
    events.sort((one, other) => one.revision - other.revision)
    return events.map(({ type, key, entry }) => {
      const [plural = ''] = key.bucket.split('.')
      const object = JSON.parse(entry.text.toString()) as Obj
      const change: StoreChange = { type, plural, namespace: key.namespace, name: key.name, object }
      const cause = causeOf(change)
      const applied: Change = { type, cause, ...model.apply(change, cause) }
      signIns.follow(applied)
      return applied
    })
  }

  function lookBefore(step: Step): Before {
    const ask = askOf(step)
    if (credentials.endOf(step.secret) !== undefined) credentials.used(step.secret)
    const credential = credentials.of(step.secret)
    const scope = credential?.scope
    const isActing = step.as && credential && mayImpersonate(prover, credential, step.as)
    const principal = step.as ? (isActing ? impersonated(prover, step.as) : undefined) : credential?.principal
    const may = (atom: Atom) =>
      credential !== undefined && principal !== undefined && rights.may(principal, atom) && scopeCovers(scope, atom)
    const bits = credential && principal ? bothBits(rights.bitsOf(principal), scopeBits(scope)) : noBits()
    const deletes = may({ ...ask, verb: 'delete', sub: '' })
    return { credential, principal, scope, bits, ask, allowed: may(ask), deletes, administers: may(allKeys) }
  }

  /** Only the first change of the object that a request names belongs to the request; the server causes later ones. */
  function causes(step: Step, name: string): (change: StoreChange) => Cause {
    const done = new Set<string>()
    return ({ plural, namespace, name: changed }) => {
      const slot = slotOf({ ...step.kind, plural }, namespace, changed)
      const isMeant =
        plural === step.kind.plural &&
        !done.has(slot) &&
        (step.method === 'deletecollection'
          ? namespace === step.namespace
          : slot === slotOf(step.kind, step.namespace, name))
      if (!isMeant) return 'server'
      done.add(slot)
      return step.sub === 'rotate' || chosenIn(step) !== undefined ? 'rotation' : 'request'
    }
  }

  async function perform(step: Step): Promise<Outcome> {
    const before = lookBefore(step)
    const request = requestOf(step)
    const revision = server.storage.store.revision
    const answer = await server.ask(request)
    const accepted = answer.code < 300
    if (server.storage.store.revision !== revision) await server.settle()
    const shown = accepted && step.method !== 'get' ? (parsed(answer) as Obj) : undefined
    const name = step.name || (shown?.metadata?.name ?? '')
    // Objects of a collection are deleted one by one, until the caller loses the right to.
    const isPartial = step.method === 'deletecollection' && before.allowed
    const changes = absorb(accepted || isPartial ? causes(step, name) : () => 'server')
    const secret = step.kind === kinds.OwnedAccessKey ? shown?.spec?.key : undefined
    const outcome = { step, before, request, answer, accepted, changes, shown: secret }
    if (accepted && !step.dryRun) learn(outcome, name)
    prover.check(outcome)
    await checkSilence(prover, outcome)
    if (changes.length > 0) await checkDesired(prover, false)
    return outcome
  }

  /** The knowledge of a client after this request and response. */
  function learn({ step, before, request, answer, changes, shown }: Outcome, name: string): void {
    const isAttacker = step.actor === 'attacker'
    if (step.kind === kinds.OwnedAccessKey) {
      const key = model.get(kinds.OwnedAccessKey, '', name)
      const isRotation = step.sub === 'rotate'
      const { login, principal } = before.credential ?? {}
      const isNew = key !== undefined && changes.some(one => one.type === 'created' && one.after?.uid === key.uid)
      if (isNew && login !== undefined && key.object.spec?.user === principal?.username) signIns.derived(key, login)
      if (key && step.sub === '' && step.method !== 'delete') {
        const how =
          step.method === 'json' ? 'json' : step.method === 'create' || step.method === 'update' ? 'whole' : 'merge'
        credentials.sent(key, { how, body: step.body })
      }
      const secret = shown ?? chosenIn(step)
      if (key && secret) {
        const overlap = (step.body as { spec?: { overlapSeconds?: number } } | undefined)?.spec?.overlapSeconds ?? 0
        credentials.learn(secret, key, isRotation ? overlap * 1000 : 0)
        if (isAttacker) coalition.add(secret)
      }
    }
    if (step.kind === tokens) {
      const token = tokenIn(answer, step.secret)
      if (token) credentials.tokens.push(token)
    }
    if (step.kind === kinds.User && step.sub === 'link') {
      const { subject = '' } = (step.body as { spec?: { subject?: string } }).spec ?? {}
      signIns.linked(subject, model.get(kinds.User, '', name)?.object.spec?.username ?? '')
    }
    const written = model.get(step.kind, step.namespace, name)
    if (step.kind.shared && written && request.body) canaries.planted(String(request.body), written.uid)
  }

  const reachNow = () => reachOf({ model, rights, credentials, signIns, provider }, { secrets: coalition, accounts })
  /** Without a request of the API. */
  function checkSteps(changes: readonly Change[], attack?: string): void {
    checkObjects(prover, changes, undefined)
    checkData(prover, changes, undefined)
    checkTokens(prover)
    checkFlows(prover, undefined)
    const reach = reachNow()
    if (attack !== undefined) checkConservation(prover, reach, attack, changes)
    prover.reach = reach
    checkBound(prover, changes)
  }
  const prover: Prover = {
    server,
    model,
    credentials,
    rights,
    signIns,
    canaries,
    coalition,
    accounts,
    reach: noBits(),
    flows: flowsOf(model),
    graces: new Map(),
    turn: 0,
    lookBefore,
    perform,
    absorb,
    give(secret) {
      coalition.add(secret)
      prover.reach = reachNow()
    },
    async signIn({ what, byAttackers, run }) {
      const learned = await run()
      await server.settle()
      const changes = absorb(() => 'server')
      learned?.(changes)
      checkSteps(changes, byAttackers ? what : undefined)
      await checkDesired(prover, false)
    },
    async wait(seconds) {
      await server.advance(seconds, credentials.all())
      checkSteps(absorb(() => 'server'))
      await checkDesired(prover, true)
    },
    check(outcome) {
      const { step, changes, accepted } = outcome
      if (accepted) {
        checkRequest(outcome)
        checkBroughtKeys(prover, outcome)
        checkCredentials(prover, outcome)
        checkScopedKeys(outcome)
      }
      checkObjects(prover, changes, outcome)
      checkData(prover, changes, outcome)
      if (step.actor === 'attacker') checkAnswer(prover, outcome)
      if (changes.length === 0 && !outcome.shown) return
      checkFlows(prover, outcome)
      checkTokens(prover)
      const reach = reachNow()
      const what = `${step.what} of ${step.kind.kind} "${step.name}"`
      if (step.actor === 'attacker') checkConservation(prover, reach, what, changes)
      prover.reach = reach
      checkBound(prover, changes)
    },
    dataOf: (namespace, name) =>
      JSON.stringify(server.apiServer.registry.open(ProjectSecret, { namespace, name })?.spec?.['data'] ?? {}),
    async close() {
      for (const cursor of cursors) cursor.close()
      await server.close()
    },
  }
  // Initial objects have owners like later ones.
  absorb(() => 'request')
  for (const key of model.of(kinds.OwnedAccessKey)) credentials.learn(server.adminKey, key, 0)
  return prover
}

function parsed({ text }: HttpAnswer): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

type Claims = {
  readonly sub: string
  readonly groups: readonly string[]
  readonly iat: number
  readonly exp: number
  readonly jti: string
  readonly 'platform.sh': { readonly key: string }
}

function tokenIn(answer: HttpAnswer, secret: string): Token | undefined {
  const token = ((parsed(answer) as Obj | undefined)?.status?.['token'] ?? '') as string
  const [, claims] = token.split('.')
  if (!claims) return undefined
  const {
    sub,
    groups,
    iat,
    exp,
    jti,
    'platform.sh': holder,
  } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Claims
  return { secret, keyUid: holder.key, username: sub, groups, issued: iat * 1000, expires: exp * 1000, id: jti }
}
