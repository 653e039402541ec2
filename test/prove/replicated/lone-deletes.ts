// Creates objects and deletes them, each once and by one client. So a delete never finds that its object is gone or was changed.
//
// Teams do not show this: their deletes also store a revocation, by which a replica recognizes its commit.

import { setTimeout as pause } from 'node:timers/promises'
import type { Connect } from '../lean-client.ts'
import type { Violation } from '../recording.ts'

const path = '/kubernetes/management/apis/rbac.authorization.k8s.io/v1/clusterroles'
const clients = 8
const restMs = 20
/** 504: the outcome is unknown. */
const expected = new Set([200, 503, 504])
const none: Violation = { rule: 'answer', text: 'no delete of an object that nobody else writes was answered' }

export type LoneDeletes = {
  readonly violations: readonly Violation[]
  /** How many deletes were answered. */
  readonly answered: number
  stop(): Promise<void>
}

export function disturbLoneDeletes(connect: Connect): LoneDeletes {
  const violations: Violation[] = []
  let answered = 0
  let isOver = false

  async function run(id: number): Promise<void> {
    const client = connect(20_000)
    const ask = (...request: Parameters<typeof client.ask>) =>
      client.ask(...request).then(
        ({ code }) => code,
        () => undefined,
      )
    for (let count = 0; !isOver; count++) {
      await pause(restMs)
      const name = `lone-${id}-${count}`
      if ((await ask('POST', path, JSON.stringify({ metadata: { name }, rules: [] }))) !== 201) continue
      const code = await ask('DELETE', `${path}/${name}`)
      if (code === undefined) continue
      answered++
      if (!expected.has(code))
        violations.push({ rule: 'answer', text: `the only delete of ${name} was answered with ${code}` })
    }
    client.close()
  }

  const running = Promise.all(Array.from({ length: clients }, (_, id) => run(id)))
  return {
    violations,
    get answered() {
      return answered
    },
    async stop() {
      isOver = true
      await running
      if (answered === 0) violations.push(none)
    },
  }
}
