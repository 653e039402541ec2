// `platform storage status` and `storage rotate-key`: shows and rotates encryption keys while a server runs (D28).

import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type KeyRing, keyRingIn } from '../apiserver/data-directory.ts'
import { etcdOf } from '../apiserver/etcd-settings.ts'
import { readSettings } from '../apiserver/settings.ts'
import { UsageError } from '../host/command.ts'
import { writeSecret } from '../host/secret-file.ts'
import { kinds } from '../kinds/index.ts'
import { countByKey } from '../registry/reencrypt.ts'
import { readStored } from '../storage/index.ts'
import { addLastKey, makeKeyRing, nextKeyIn, withFirstKey } from '../storage/key-ring.ts'

type Env = NodeJS.ProcessEnv

type Opened = {
  readonly directory: string
  readonly isShared: boolean
  readonly ring: () => KeyRing
  /** Sealed values by the id of their key. */
  readonly seals: () => ReadonlyMap<string, number>
  close(): Promise<void>
}

async function open(args: readonly string[], env: Env): Promise<Opened> {
  const settings = await readSettings(args, env)
  const directory = resolve(settings.data)
  const ring = () => keyRingIn({ directory, setting: settings.masterKey, env, mayMake: false })
  const etcd = etcdOf(settings)
  if (etcd) {
    // Loaded only if it is used, because it has many modules.
    const { openEtcdStore } = await import('../storage/etcd/store.ts')
    const store = await openEtcdStore({ ...etcd, mayCreate: false })
    return { directory, isShared: true, ring, seals: () => countByKey(store, kinds), close: store.close }
  }
  if (!existsSync(join(directory, 'platform.db')))
    throw new UsageError([`${directory} has no platform.db: set --data to the directory of an existing server`])
  const seals = () => countByKey(readStored(directory), kinds)
  return { directory, isShared: false, ring, seals, close: async () => {} }
}

async function withStorage(args: readonly string[], env: Env, use: (opened: Opened) => Promise<void>): Promise<void> {
  const opened = await open(args, env)
  try {
    await use(opened)
  } finally {
    await opened.close()
  }
}

export const storageStatus = (args: readonly string[], env: Env) => withStorage(args, env, showStatus)

async function showStatus({ ring, seals }: Opened): Promise<void> {
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

export const storageRotateKey = (args: readonly string[], env: Env) => withStorage(args, env, rotateKey)

/** Adds a new key as the first and waits while the server re-encrypts. An interrupted re-encryption resumes by itself. */
async function rotateKey({ directory, isShared, ring, seals }: Opened): Promise<void> {
  const { from } = ring()
  if (from.startsWith('env:'))
    throw new Error(
      `the key ring is in the environment variable ${from.slice(4)}: add a line with a new key before the others and restart the server, which then encrypts everything with it`,
    )
  const text = readFileSync(from, 'utf8')
  const random = (size: number) => randomBytes(size)
  const prepared = isShared ? nextKeyIn(text) : undefined
  if (isShared && prepared === undefined) {
    writeSecret(from, addLastKey(random, text))
    return console.log(
      `${from}: added the key ${ring().keys.at(-1)?.id}, which only decrypts. Copy this file to every replica, wait until each has logged the change, and run the command again`,
    )
  }
  writeSecret(from, prepared === undefined ? makeKeyRing(random, text) : withFirstKey(prepared, text))
  const id = ring().keys[0]?.id ?? ''
  console.log(`${from}: key ${id} encrypts from now on, the other keys only decrypt`)
  if (isShared) console.log('copy this file to every replica; the leader encrypts everything again')
  else if (!isRunning(directory)) return console.log('no server is running: the next start encrypts everything again')
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
