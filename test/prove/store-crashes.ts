// Kills a bare store process repeatedly, and checks that the next one on the same file has all acknowledged writes.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Again } from '../support/server.ts'
import { openHistory, type Seen } from './history.ts'
import { diceOf } from './seeded-random.ts'

const program = join(import.meta.dirname, 'store-child.ts')
/** A compile cache for the next two hundred children. */
const env = { ...process.env, NODE_COMPILE_CACHE: join(import.meta.dirname, '../../node_modules/.cache/compiled') }

type Line = {
  readonly state?: readonly Seen[]
  readonly revision?: number
  readonly open?: string
  readonly value?: string
  readonly acknowledged?: string
  readonly version?: number
}

export type StoreCrashes = {
  readonly kills: number
  readonly seed: string
  /** Modules to load before the store, and its environment. */
  readonly begin?: Again
  /** Called after every kill. */
  readonly died?: () => void
}

/** Returns the number of acknowledged writes. */
export async function runStoreCrashes({ kills, seed, begin = {}, died }: StoreCrashes): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-prove-'))
  const roll = diceOf(`${seed}/store`)
  const history = openHistory()
  const take = ({ state, revision = 0, open, value, acknowledged, version }: Line) => {
    if (state) history.check(state, revision)
    if (open !== undefined) history.begin(open, value)
    if (acknowledged !== undefined) history.acknowledge(acknowledged, version)
  }
  try {
    for (let kill = 0; kill < kills; kill++) {
      const said = join(directory, 'said')
      const imports = (begin.imports ?? []).flatMap(file => ['--import', file])
      const args = [...imports, program, join(directory, 'store.db'), said, `${seed}-${kill}`]
      const child = spawn(process.execPath, args, {
        stdio: ['ignore', 'pipe', begin.env ? 'ignore' : 'inherit'],
        env: { ...env, ...begin.env },
      })
      const ended = once(child, 'exit')
      await Promise.race([once(child.stdout, 'data'), ended])
      await pause(roll(40))
      child.kill('SIGKILL')
      await ended
      died?.()
      assert.equal(child.signalCode, 'SIGKILL', `it ended by itself with ${child.exitCode}`)
      for (const line of readFileSync(said, 'utf8').split('\n')) if (line.endsWith('}')) take(JSON.parse(line) as Line)
    }
    return history.writes
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
