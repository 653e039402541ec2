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
 * What requests leave behind is collected in portions of 4 MB in place of 16: 10 MB less, and shorter pauses. 2 MB would take 3 less again, but
 * then much is kept for long that the last request of a connection left, and all memory is gone through for it. For so little, waking other
 * threads to help takes longer than the work.
 */
const young = ['--max-semi-space-size=4', '--no-parallel-scavenge']

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
