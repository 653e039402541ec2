// `platform storage status` and `platform storage rotate-key`: which keys seal what is stored, and a new one (D28). Both work while a server runs.

import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { keyRingIn } from '../apiserver/data-directory.ts'
import { readSettings } from '../apiserver/settings.ts'
import { UsageError } from '../host/command.ts'
import { writeSecret } from '../host/secret-file.ts'
import { kinds } from '../kinds/index.ts'
import { countSeals } from '../registry/reencrypt.ts'
import { readStored } from '../storage/index.ts'
import { makeKeyRing } from '../storage/key-ring.ts'

type Env = NodeJS.ProcessEnv

async function open(args: readonly string[], env: Env) {
  const settings = await readSettings(args, env)
  const directory = resolve(settings.data)
  if (!existsSync(join(directory, 'platform.db')))
    throw new UsageError([
      `${directory} has no platform.db; --data names the directory of a server that was started before`,
    ])
  const ring = () => keyRingIn({ directory, setting: settings.masterKey, env, mayMake: false })
  return { directory, ring, seals: () => countSeals(readStored(directory), kinds) }
}

export async function storageStatus(args: readonly string[], env: Env): Promise<void> {
  const { ring, seals } = await open(args, env)
  const { keys, from } = ring()
  const found = seals()
  const [first] = keys
  const lines = keys.map(
    ({ id }) => `${id.padEnd(14)}${(id === first?.id ? 'seals' : 'opens').padEnd(9)}${found.get(id) ?? 0}`,
  )
  const missing = [...found].filter(([id]) => !keys.some(key => key.id === id))
  const waiting = [...found].reduce((sum, [id, count]) => (id === first?.id ? sum : sum + count), 0)
  console.log(
    [
      `key ring ${from}`,
      `${'KEY'.padEnd(14)}${'DOES'.padEnd(9)}VALUES`,
      ...lines,
      ...missing.map(([id, count]) => `${id.padEnd(14)}${'MISSING'.padEnd(9)}${count}`),
      waiting === 0
        ? 'every value is sealed with the first key'
        : `${waiting} values wait to be sealed with the first key: a server does that in the background, from its start on`,
    ].join('\n'),
  )
}

const every = 200
const patience = 30_000

/** A new key before the others; then looks on while the server uses it. What is interrupted goes on by itself. */
export async function storageRotateKey(args: readonly string[], env: Env): Promise<void> {
  const { directory, ring, seals } = await open(args, env)
  const { from } = ring()
  if (from.startsWith('env:'))
    throw new Error(
      `the key ring is in the environment variable ${from.slice(4)}: put a line with a new key before its others and start the server anew; it then seals everything with it`,
    )
  writeSecret(
    from,
    makeKeyRing(size => randomBytes(size), readFileSync(from, 'utf8')),
  )
  const id = ring().keys[0]?.id ?? ''
  console.log(`${from}: ${id} seals from now on, the keys after it still open`)
  if (!isRunning(directory)) return console.log('no server runs here: the next start seals everything anew')
  let left = Number.POSITIVE_INFINITY
  for (let since = Date.now(); left > 0; ) {
    const now = [...seals()].reduce((sum, [key, count]) => (key === id ? sum : sum + count), 0)
    if (now < left) {
      since = Date.now()
      // For whoever looks on; a script waits for the end.
      if (process.stderr.isTTY) console.error(`${now} values wait to be sealed anew`)
    }
    left = now
    if (left > 0 && Date.now() - since > patience)
      throw new Error(
        `${left} values still wait: either the server uses another key ring, or they do not open (see its log, and platform_seal_failures_total)`,
      )
    if (left > 0) await setTimeout(every)
  }
  console.log('every value is sealed with it')
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
