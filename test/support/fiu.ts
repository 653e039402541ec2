// Makes system calls of a running program fail, with libfiu from Debian's archive. The proofs on failing disks use it.

import { globSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exec } from './exec.ts'
import { fetchDebian } from './fetch-debian.ts'
import type { Again } from './server.ts'

const cache = join(import.meta.dirname, '../../node_modules/.cache/platform-tools')
const suites = [['trixie', 'bookworm']]

export type Fiu = {
  /** The environment of a program whose system calls can fail on demand. */
  readonly begin: Again
  /** The environment of a program whose calls fail from the start. */
  failing(point: string, errno: number): NodeJS.ProcessEnv
  /** `point`: a name of libfiu, such as posix/io/sync/fsync; `errno`: the error of the call. */
  enable(pid: number, point: string, errno: number): Promise<void>
  disable(pid: number, point: string): Promise<void>
  close(): Promise<void>
}

type Found = { readonly libraries: readonly string[]; readonly control: string }

/** undefined: libfiu is not available on this machine. */
export async function openFiu(): Promise<Fiu | undefined> {
  const found = find() ?? (await fetch())
  if (!found) return undefined
  const directory = await mkdtemp(join(tmpdir(), 'platform-fiu-'))
  const pipe = join(directory, 'pipe')
  const tell = async (pid: number, command: string) => {
    const { code, stdout, stderr } = await exec('bash', [found.control, '-f', pipe, '-c', command, String(pid)])
    if (code !== 0) throw new Error(`fiu-ctrl ${command}: ${stdout}${stderr}`)
  }
  return {
    begin: { env: { LD_PRELOAD: found.libraries.join(' '), FIU_CTRL_FIFO: pipe } },
    failing: (point, errno) => ({
      LD_PRELOAD: found.libraries.join(' '),
      FIU_ENABLE: `enable name=${point},failinfo=${errno}`,
    }),
    enable: (pid, point, errno) => tell(pid, `enable name=${point},failinfo=${errno}`),
    disable: (pid, point) => tell(pid, `disable name=${point}`),
    close: () => rm(directory, { recursive: true, force: true }),
  }
}

/** The process that serves a data directory. */
export const pidIn = async (directory: string) => Number(await readFile(join(directory, 'lock.pid'), 'utf8'))

async function fetch(): Promise<Found | undefined> {
  for (const name of ['libfiu0', 'fiu-utils']) await fetchDebian({ name, cache, suites })
  return find()
}

function find(): Found | undefined {
  const files = (pattern: string) => globSync(pattern, { cwd: cache }).map(file => join(cache, file))
  const library = (name: string) => files(`libfiu0-*/usr/lib/**/${name}`)[0]
  const libraries = ['libfiu.so.0', 'fiu_run_preload.so', 'fiu_posix_preload.so'].map(library)
  const [control] = files('fiu-utils-*/usr/bin/fiu-ctrl')
  if (!control || libraries.includes(undefined)) return undefined
  return { libraries: libraries as string[], control }
}
