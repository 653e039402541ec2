// `platform storage status` and `storage rotate-key`: shows and rotates encryption keys while a server runs (D28).

import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { keyRingIn } from '../apiserver/data-directory.ts'
import { readSettings } from '../apiserver/settings.ts'
import { UsageError } from '../host/command.ts'
import { writeSecret } from '../host/secret-file.ts'
import { kinds } from '../kinds/index.ts'
import { countByKey } from '../registry/reencrypt.ts'
import { readStored } from '../storage/index.ts'
import { makeKeyRing } from '../storage/key-ring.ts'

type Env = NodeJS.ProcessEnv

async function open(args: readonly string[], env: Env) {
  const settings = await readSettings(args, env)
  const directory = resolve(settings.data)
  if (!existsSync(join(directory, 'platform.db')))
    throw new UsageError([`${directory} has no platform.db: set --data to the directory of an existing server`])
  const ring = () => keyRingIn({ directory, setting: settings.masterKey, env, mayMake: false })
  return { directory, ring, seals: () => countByKey(readStored(directory), kinds) }
}

export async function storageStatus(args: readonly string[], env: Env): Promise<void> {
  const { ring, seals } = await open(args, env)
  const { keys, from } = ring()
  const found = seals()
  const [first] = keys
  const lines = keys.map(
    ({ id }) => `${id.padEnd(14)}${(id === first?.id ? 'encrypts' : 'decrypts').padEnd(9)}${found.get(id) ?? 0}`,
  )
  const missing = [...found].filter(([id]) => !keys.some(key => key.id === id))
  const waiting = [...found].reduce((sum, [id, count]) => (id === first?.id ? sum : sum + count), 0)
  console.log(
    [
      `key ring ${from}`,
      `${'KEY'.padEnd(14)}${'USE'.padEnd(9)}VALUES`,
      ...lines,
      ...missing.map(([id, count]) => `${id.padEnd(14)}${'MISSING'.padEnd(9)}${count}`),
      waiting === 0
        ? 'all values are encrypted with the first key'
        : `${waiting} values are not yet encrypted with the first key: a running server does that in the background`,
    ].join('\n'),
  )
}

const pollMs = 200
const stallMs = 30_000

/** Adds a new key as the first and waits while the server re-encrypts. An interrupted re-encryption resumes by itself. */
export async function storageRotateKey(args: readonly string[], env: Env): Promise<void> {
  const { directory, ring, seals } = await open(args, env)
  const { from } = ring()
  if (from.startsWith('env:'))
    throw new Error(
      `the key ring is in the environment variable ${from.slice(4)}: add a line with a new key before the others and restart the server, which then encrypts everything with it`,
    )
  writeSecret(
    from,
    makeKeyRing(size => randomBytes(size), readFileSync(from, 'utf8')),
  )
  const id = ring().keys[0]?.id ?? ''
  console.log(`${from}: key ${id} encrypts from now on, the other keys only decrypt`)
  if (!isRunning(directory)) return console.log('no server is running: the next start encrypts everything again')
  let left = Number.POSITIVE_INFINITY
  for (let since = Date.now(); left > 0; ) {
    const now = [...seals()].reduce((sum, [key, count]) => (key === id ? sum : sum + count), 0)
    if (now < left) {
      since = Date.now()
      // Show progress only at a terminal.
      if (process.stderr.isTTY) console.error(`${now} values left to encrypt`)
    }
    left = now
    if (left > 0 && Date.now() - since > stallMs)
      throw new Error(
        `${left} values are still not encrypted with the new key: the server uses another key ring, or cannot decrypt them (see its log and platform_seal_failures_total)`,
      )
    if (left > 0) await setTimeout(pollMs)
  }
  console.log('all values are encrypted with it')
}

function isRunning(directory: string): boolean {
  const file = join(directory, 'lock.pid')
  const pid = existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
