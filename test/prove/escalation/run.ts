// The escalation prover: random worlds, random steps, and the checks after each step.

import { administer } from './admin.ts'
import { attack } from './attack.ts'
import { buildWorld } from './build.ts'
import { checkWholeBound } from './check-permissions.ts'
import { requestOf } from './encode.ts'
import type { Stage } from './generator-context.ts'
import { kinds } from './objects.ts'
import { openProver, type Prover } from './prover.ts'
import { type Chance, openChance } from './seeded-choices.ts'
import { signInStep } from './sign-in-steps.ts'
import { type Family, families, type Outcome, type Step } from './step.ts'
import { names } from './universe.ts'
import { type Invariant, Violation } from './violation.ts'

export type EscalationOptions = {
  readonly steps: number
  readonly seed: string
  /** Maximum duration in seconds. */
  readonly seconds?: number
  /** Prepares and tries only this attack. */
  readonly only?: Family
  /** Attacks to leave out. */
  readonly except?: readonly Family[]
  /** The first world, to reproduce a violation. */
  readonly world?: number
}
/** The number of attempts, so that an idle run does not count as proof. */
export type Tried = {
  steps: number
  worlds: number
  /** Accepted and rejected requests, by kind and method. */
  readonly writes: { [what: string]: { accepted: number; refused: number } }
  /** Number of attempts, by attack. */
  readonly dangers: { [danger in Family]: number }
}
/** Attacks that were never tried, and kinds without an accepted or a refused request: such a run proves little. */
export function gapsIn({ writes, dangers }: Tried): string[] {
  const gaps: string[] = families.filter(one => dangers[one] === 0)
  for (const { kind } of Object.values(kinds).filter(one => one !== kinds.TokenRevocation)) {
    const own = Object.entries(writes).filter(([what]) => what.split(/[ /]/)[0] === kind)
    for (const field of ['accepted', 'refused'] as const)
      if (own.every(([, one]) => one[field] === 0)) gaps.push(`${kind}: none ${field}`)
  }
  return gaps
}

/** A violation with its position in the run. */
export class Escalation extends Error {
  readonly invariant: Invariant
  readonly steps: number
  constructor(invariant: Invariant, message: string, steps: number) {
    super(message)
    this.name = 'Escalation'
    this.invariant = invariant
    this.steps = steps
  }
}

/** Most attacks need a few steps, while the objects that they need are there. Some need many. */
const worldSizes = [60, 120, 300]
const sweepEvery = 60

export async function runEscalation(options: EscalationOptions): Promise<Tried> {
  const { steps, seconds = Number.POSITIVE_INFINITY, world = 0 } = options
  const until = performance.now() + seconds * 1000
  const tried: Tried = {
    steps: 0,
    worlds: 0,
    writes: {},
    dangers: Object.fromEntries(families.map(one => [one, 0])) as Tried['dangers'],
  }
  for (let index = world; tried.steps < steps && performance.now() < until; index++) {
    await runWorld({ ...options, world: index, steps: steps - tried.steps }, tried)
    tried.worlds++
  }
  return tried
}

async function runWorld(options: EscalationOptions, tried: Tried): Promise<void> {
  const { seed, steps: most, only, world } = options
  const chance = openChance(`${seed}/${world}`)
  const steps = Math.min(chance.pick(worldSizes), most)
  const prover = await openProver(chance.is(0.15))
  const stage: Stage = { prover, chance, ...castOf(chance, options) }
  const journal: Entry[] = []
  let step = 0
  try {
    await buildWorld(stage)
    for (; step < steps; step++) {
      tried.steps++
      if (chance.is(0.04)) {
        const seconds = chance.weighted([
          [8, 1],
          [5, 61],
          [3, 700],
          [2, 3700],
          [1, 90_000],
        ] as const)
        journal.push({ step, seconds })
        await prover.wait(seconds)
      } else if (await trySignIn(stage, tried, what => journal.push({ step, what }))) {
        // Its result is in the model.
      } else {
        const next = nextStep(stage)
        // Recorded before it is sent, so that a violation shows it.
        journal.push({ step, sent: next, holder: holderOf(prover, next) })
        const outcome = await prover.perform(next)
        count(tried, outcome)
        if (!outcome.accepted || next.dryRun || next.method === 'get') journal.pop()
        handOver(stage, outcome)
      }
      if (step % sweepEvery === 0) checkWholeBound(prover)
    }
    checkWholeBound(prover)
  } catch (error) {
    const place = `seed ${seed}, world ${world}, step ${step}${only ? `, only ${only}` : ''}`
    if (!(error instanceof Violation)) throw new Error(`the prover failed: ${place}`, { cause: error })
    const last = journal.slice(-12).map(print).join('\n  ')
    throw new Escalation(
      error.invariant,
      `${error.message}.\n${place}. The last accepted steps:\n  ${last}`,
      tried.steps,
    )
  } finally {
    await prover.close()
  }
}

/** Attacks that need steps of sign-in. */
const signInFamilies: readonly Family[] = ['users', 'sessions', 'machines', 'clusters']

/** False: this step is another one. */
async function trySignIn(stage: Stage, { dangers }: Tried, note: (what: string) => void): Promise<boolean> {
  const { chance, prepared } = stage
  const isPrepared = signInFamilies.some(one => prepared.has(one))
  const step = chance.is(isPrepared ? 0.1 : 0.04) ? signInStep(stage) : undefined
  if (!step) return false
  note(step.what)
  if (step.danger) dangers[step.danger]++
  await stage.prover.signIn(step)
  return true
}

/** Not every step fits the world. Then it tries another. Most steps of attackers belong to an attack that the world is prepared for. */
function nextStep(stage: Stage): Step {
  const { chance, prepared } = stage
  for (let tries = 0; tries < 200; tries++) {
    if (chance.is(0.15)) {
      const step = administer(stage)
      if (step) return step
    } else {
      const step = attack(stage)
      if (step && ((step.danger && prepared.has(step.danger)) || chance.is(0.25))) return step
    }
  }
  throw new Error('there is nothing left to try in this world')
}

/** The attackers, and the attacks that the objects are prepared for: one in turn, and others. */
function castOf(
  chance: Chance,
  { seed, world = 0, only, except = [] }: EscalationOptions,
): Pick<Stage, 'attackers' | 'enabled' | 'prepared'> {
  const enabled = only ? [only] : families.filter(one => !except.includes(one))
  const first = openChance(seed).below(enabled.length)
  const prepared = new Set([
    enabled[(first + world) % enabled.length] as Family,
    ...Array.from({ length: 2 }, () => chance.pick(enabled)),
    // Connected clusters have many ways in.
    ...(enabled.includes('clusters') && chance.is(0.3) ? (['clusters'] as const) : []),
    // Sessions depend on an account, a key and a sign-in, which must fit.
    ...(enabled.includes('sessions') && chance.is(0.15) ? (['sessions'] as const) : []),
  ])
  // They also have keys of their own, which are not bound to a token or a session.
  const holder = prepared.has('machines') ? 'bot:job' : prepared.has('sessions') ? 'corp:pia' : undefined
  const second = holder !== undefined && chance.is(0.8) ? holder : chance.pick(names.users)
  return { attackers: [...new Set([chance.pick(names.users), second])], enabled: new Set(enabled), prepared }
}

/** The administrator gives a new key to its user. */
function handOver({ prover, attackers, chance }: Stage, { step, shown, accepted }: Outcome): void {
  if (!accepted || step.actor !== 'admin' || !shown || step.sub) return
  const key = prover.credentials.of(shown)?.key
  const isTheirs = attackers.includes(key?.object.spec?.user ?? '')
  if (isTheirs && chance.is(0.8)) prover.give(shown)
}

function count({ writes, dangers }: Tried, { step, accepted }: Outcome): void {
  if (step.actor !== 'attacker') return
  const what = `${step.kind.kind}${step.sub ? `/${step.sub}` : ''} ${step.method}${step.as ? ' as another' : ''}`
  writes[what] ??= { accepted: 0, refused: 0 }
  writes[what][accepted ? 'accepted' : 'refused']++
  if (step.danger) dangers[step.danger]++
}

/** The steps, for the report of a violation. */
type Entry =
  | { readonly step: number; readonly seconds: number }
  | { readonly step: number; readonly what: string }
  | { readonly step: number; readonly sent: Step; readonly holder: string }

function holderOf({ credentials }: Prover, { secret, as }: Step): string {
  const credential = credentials.of(secret)
  if (!credential) return 'a key that no longer works'
  const scope = credential.scope === undefined ? '' : ' (scoped)'
  const other = as ? `, acting as ${as.user}` : ''
  return `${credential.principal.username} with ${credential.what}${scope}${other}`
}

function print(entry: Entry): string {
  if ('seconds' in entry) return `${entry.step} the clock moves by ${entry.seconds} s`
  if ('what' in entry) return `${entry.step} ${entry.what}`
  const { step, sent, holder } = entry
  const { method, url, body = '' } = requestOf(sent)
  const path = url.replace(/^\/kubernetes\/management\/apis\//, '')
  return `${step} ${sent.actor} ${holder}: ${method} ${path}, ${sent.what} ${body.slice(0, 900)}`
}
