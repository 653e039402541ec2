// Finds every kubectl from 1.29 on this machine, or fetches some from Debian's archive.

import { access, constants, readdir } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { exec } from './exec.ts'
import { fetchDebian } from './fetch-debian.ts'
import { notRun } from './missing-tool.ts'

export type Kubectl = { readonly version: string; readonly minor: number; readonly file: string }

const floor = 29
const cache = join(import.meta.dirname, '../../node_modules/.cache/platform-tools')
/** Releases of the archive with a kubectl above the minimum. From each line, the first one with a kubectl is used. */
const suites = [['trixie'], ['forky', 'sid']]

/** One of each version, oldest first. */
export async function findKubectls(): Promise<Kubectl[]> {
  const found = await search()
  if (found.length) return found
  await fetchDebian({ name: 'kubectl', cache, suites })
  return search()
}

/** Declares the tests for the newest kubectl; in `npm run test:slow`, for the older ones. Without kubectl, declares one test that says so. */
export async function withEachKubectl(declare: (kubectl: Kubectl) => void): Promise<void> {
  const kubectls = await findKubectls()
  if (!kubectls.length) notRun(`kubectl ≥ 1.${floor}`)
  const isFull = process.env['PLATFORM_TEST_MATRIX'] === 'full'
  // A single kubectl runs in both.
  const chosen = isFull && kubectls.length > 1 ? kubectls.slice(0, -1) : kubectls.slice(-1)
  for (const kubectl of chosen) declare(kubectl)
}

async function search(): Promise<Kubectl[]> {
  const installed = (await names(cache)).map(name => join(cache, name, 'usr/bin'))
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), ...installed]
  const files = (await Promise.all(directories.map(kubectlsIn))).flat()
  const known = (await Promise.all(files.map(ask))).filter(one => one !== undefined)
  const versions = new Map(known.toReversed().map(one => [one.version, one]))
  return [...versions.values()]
    .filter(one => one.minor >= floor)
    .sort((a, b) => a.version.localeCompare(b.version, 'en', { numeric: true }))
}

async function kubectlsIn(directory: string): Promise<string[]> {
  const files = (await names(directory)).filter(name => /^kubectl[-.]?(v?1\.\d+(\.\d+)?)?$/.test(name))
  const runnable = await Promise.all(
    files.map(name =>
      access(join(directory, name), constants.X_OK).then(
        () => join(directory, name),
        () => undefined,
      ),
    ),
  )
  return runnable.filter(file => file !== undefined)
}

const names = (directory: string): Promise<string[]> => readdir(directory).catch(() => [])

async function ask(file: string): Promise<Kubectl | undefined> {
  const { code, stdout } = await exec(file, ['version', '--client', '-o', 'json'])
  const version = /"gitVersion": "v(1\.(\d+)[^"]*)"/.exec(stdout)
  return code === 0 && version ? { version: version[1] ?? '', minor: Number(version[2]), file } : undefined
}
