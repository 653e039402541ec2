// The escalation prover: random worlds, random steps, and the checks after each step.

import { administer } from './admin.ts'
import { attack } from './attack.ts'
import { buildWorld } from './build.ts'
import { checkWholeBound } from './check-permissions.ts'
import { requestOf } from './encode.ts'
import type { Stage } from './generator-context.ts'
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

const stepsPerWorld = 400
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
    await runWorld({ ...options, world: index, steps: Math.min(stepsPerWorld, steps - tried.steps) }, tried)
    tried.worlds++
  }
  return tried
}

async function runWorld({ seed, steps, only, except, world }: EscalationOptions, tried: Tried): Promise<void> {
  const chance = openChance(`${seed}/${world}`)
  const prover = await openProver(chance.is(0.15))
  const stage: Stage = { prover, chance, ...castOf(chance, only, except) }
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

/** False: this step is another one. */
async function trySignIn(stage: Stage, { dangers }: Tried, note: (what: string) => void): Promise<boolean> {
  const step = stage.chance.is(0.06) ? signInStep(stage) : undefined
  if (!step) return false
  note(step.what)
  if (step.danger) dangers[step.danger]++
  await stage.prover.signIn(step)
  return true
}

/** Not every step fits the world. Then it tries another. */
function nextStep(stage: Stage): Step {
  for (let tries = 0; tries < 200; tries++) {
    const step = stage.chance.is(0.18) ? administer(stage) : attack(stage)
    if (step) return step
  }
  throw new Error('there is nothing left to try in this world')
}

/** The attackers, and the attacks that the objects are prepared for. */
function castOf(
  chance: Chance,
  only: Family | undefined,
  except: readonly Family[] = [],
): Pick<Stage, 'attackers' | 'enabled' | 'prepared'> {
  const enabled = only ? [only] : families.filter(one => !except.includes(one))
  return {
    attackers: [...new Set([chance.pick(names.users), chance.pick(names.users)])],
    enabled: new Set(enabled),
    prepared: new Set([
      ...Array.from({ length: 4 }, () => chance.pick(enabled)),
      // Connected clusters have many ways in.
      ...(enabled.includes('clusters') && chance.is(0.4) ? (['clusters'] as const) : []),
    ]),
  }
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
