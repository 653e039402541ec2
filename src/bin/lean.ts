// Starts the program anew, once, in a process that takes little memory: malloc and V8 read how at their start alone. gateway.ts calls it.

import { getCompileCacheDir } from 'node:module'
import { dirname } from 'node:path'

type Env = { readonly [name: string]: string | undefined }

/**
 * Every TLS connection of Node has a buffer of 64 KiB that is hardly ever used. Taken from the heap it is memory that
 * others have used before, and resident; mapped, it is resident where it was used. One arena, for one thread works here.
 */
const malloc = { MALLOC_MMAP_THRESHOLD_: '32768', MALLOC_TOP_PAD_: '16384', MALLOC_ARENA_MAX: '1' }
/**
 * What requests leave behind is collected in portions of 2 MB in place of 16: a twentieth more CPU time, 14 MB less, and pauses of one millisecond
 * in place of four. For so little, waking other threads to help takes longer than the work.
 */
const young = ['--max-semi-space-size=2', '--no-parallel-scavenge']

/** Returns where nothing is to be done: it was done, somebody has settings of their own, or the system has no such thing. */
export function startLean(env: Env): void {
  const isSet = Object.keys(malloc).some(name => env[name] !== undefined)
  // In a process that is somebody else's, a test's for instance, it is not ours to end.
  const isOurs = /[\\/]bin[\\/]platform\.[jt]s$/.test(process.argv[1] ?? '')
  if (isSet || !isOurs || process.platform !== 'linux' || !process.execve) return
  const hasYoung = [...process.execArgv, env['NODE_OPTIONS'] ?? ''].some(one => one.includes('semi-space'))
  const args = [process.execPath, ...process.execArgv, ...(hasYoung ? [] : young), ...process.argv.slice(1)]
  // Below the directory that was asked for.
  const cache = getCompileCacheDir()
  process.execve(process.execPath, args, {
    ...env,
    ...malloc,
    ...(cache ? { NODE_COMPILE_CACHE: dirname(cache) } : {}),
  })
}
