// Deletes the signing key again and again. The controllers of one replica must create exactly one new key each time.

import { setTimeout as pause } from 'node:timers/promises'
import { keysBelow } from '../../../src/storage/etcd/keys.ts'
import { Compare_CompareResult, Compare_CompareTarget, type KeyValue } from '../../../src/storage/etcd/rpc.generated.ts'
import { decodeValue } from '../../../src/storage/etcd/value.ts'
import type { Violation } from '../recording.ts'
import type { Dice } from '../seeded-random.ts'
import { type Cluster, prefix } from './cluster.ts'

const keys = keysBelow(prefix)
const start = keys.ofObject({ bucket: 'signingkeys.management.platform.sh', namespace: '', name: '' })
const range = { key: start, rangeEnd: Buffer.concat([start, Buffer.of(0xff)]) }

/** Times of creation that differ by less are of the same clock: clocks jump by more than a minute. */
const sameClockMs = 45_000

export type SigningKeys = {
  readonly violations: readonly Violation[]
  /** How many keys the controllers created. */
  readonly created: number
  stop(): Promise<void>
}

export function disturbSigningKeys({ client }: Cluster, roll: Dice): SigningKeys {
  const violations: Violation[] = []
  let created = 0
  let isOver = false

  async function step(): Promise<void> {
    const { kvs } = await client.range(range)
    const [first, second] = kvs
    if (!first) return
    if (second) {
      const [one, other] = [signsFrom(first), signsFrom(second)]
      // A key of the future, from a replica whose clock is ahead, does not count for the next leader.
      if (Math.abs(one - other) < sameClockMs)
        violations.push({
          rule: 'one leader',
          text: `two signing keys, of ${first.createRevision} and ${second.createRevision}, begin at ${new Date(one).toISOString()} and ${new Date(other).toISOString()}`,
        })
    }
    created += kvs.length
    for (const { key, modRevision } of kvs)
      await client.txn({
        compare: [{ result: Compare_CompareResult.EQUAL, target: Compare_CompareTarget.MOD, key, modRevision }],
        success: [{ requestDeleteRange: { key, rangeEnd: Buffer.alloc(0) } }],
        failure: [],
      })
  }

  async function run(): Promise<void> {
    while (!isOver) {
      await step().catch(() => {})
      await pause(300 + roll(700))
    }
  }

  const running = run()
  return {
    violations,
    get created() {
      return created
    },
    async stop() {
      isOver = true
      await running
    },
  }
}

const signsFrom = ({ value }: KeyValue) =>
  Date.parse((JSON.parse(decodeValue(value).text.toString()) as { spec: { signsFrom: string } }).spec.signsFrom)
