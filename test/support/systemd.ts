// Finds the tools of systemd on this machine, or fetches them from Debian's archive. They work without a running systemd.

import { existsSync, readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { exec, type Output } from './exec.ts'
import { fetchDebian } from './fetch-debian.ts'

const cache = join(import.meta.dirname, '../../node_modules/.cache/platform-tools')

export type Systemd = {
  /** The units that systemd itself has. */
  readonly units: string
  /** Such as `systemd-analyze`. */
  run(tool: string, args: readonly string[]): Promise<Output>
}

/** undefined: not installed, and not available from the archive. */
export async function findSystemd(): Promise<Systemd | undefined> {
  const found = (await usable('/')) ?? (await fetched())
  if (found) return found
  const [, release] = /^VERSION_CODENAME=(\w+)$/m.exec(readText('/etc/os-release')) ?? []
  // From the release of this machine, because it links to its libraries.
  if (release) await fetchDebian({ name: 'systemd', dependencies: 'missing', cache, suites: [[release]] })
  return fetched()
}

async function fetched(): Promise<Systemd | undefined> {
  const folder = (await readdir(cache).catch(() => [])).find(name => name.startsWith('systemd-'))
  return folder ? usable(join(cache, folder)) : undefined
}

async function usable(tree: string): Promise<Systemd | undefined> {
  const unitsIn = ['usr/lib/systemd/system', 'lib/systemd/system'].map(path => join(tree, path))
  const libraries = ['usr/lib', 'lib'].flatMap(lib =>
    ['x86_64-linux-gnu', 'aarch64-linux-gnu'].flatMap(name => [
      join(tree, lib, name),
      join(tree, lib, name, 'systemd'),
    ]),
  )
  const env = { ...process.env, ...(tree !== '/' && { LD_LIBRARY_PATH: libraries.join(':') }) }
  const fileOf = (tool: string) => ['usr/bin', 'bin'].map(path => join(tree, path, tool)).find(existsSync)
  const run = (tool: string, args: readonly string[]) => exec(fileOf(tool) ?? tool, args, { env })
  const units = unitsIn.find(existsSync)
  if (!units || !fileOf('systemd-analyze')) return undefined
  return (await run('systemd-analyze', ['--version'])).code === 0 ? { units, run } : undefined
}

function readText(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}
