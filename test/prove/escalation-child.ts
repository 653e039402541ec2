// The escalation prover as a program, for escalation/in-child.ts and for manual runs. It prints one line of JSON: its attempts, or the violation.
//   node test/prove/escalation-child.ts --seed S --steps N   Stops after N steps, or with --seconds N after N seconds.
//   … --only DANGER | --except DANGER,DANGER                 Tries only one attack, or leaves some out.
//   … --world N                                              Starts with that world of the seed, to reproduce a violation.

import { parseArgs } from 'node:util'
import type { ChildReport } from './escalation/in-child.ts'
import { Escalation, runEscalation } from './escalation/run.ts'
import { type Family, families } from './escalation/step.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now()) },
    steps: { type: 'string', default: '10000' },
    seconds: { type: 'string' },
    only: { type: 'string', default: '' },
    except: { type: 'string', default: '' },
    world: { type: 'string', default: '0' },
  },
})

function dangers(text: string): Family[] {
  return text
    .split(',')
    .filter(Boolean)
    .map(word => {
      const found = families.find(one => one === word)
      if (!found) throw new Error(`unknown danger "${word}"; known: ${families.join(', ')}`)
      return found
    })
}

const started = performance.now()
const [only] = dangers(values.only)
const report = (found: Omit<ChildReport, 'seconds'>) =>
  console.log(JSON.stringify({ ...found, seconds: (performance.now() - started) / 1000 }))
try {
  const tried = await runEscalation({
    seed: values.seed,
    steps: Number(values.steps),
    world: Number(values.world),
    except: dangers(values.except),
    ...(values.seconds ? { seconds: Number(values.seconds) } : {}),
    ...(only ? { only } : {}),
  })
  report({ steps: tried.steps, tried })
} catch (error) {
  if (!(error instanceof Escalation)) throw error
  report({ steps: error.steps, violation: { invariant: error.invariant, text: error.message } })
}
