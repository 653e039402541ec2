// Finds Prometheus and promtool on this machine, or fetches them from Debian's archive.

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { exec } from './exec.ts'
import { fetchDebian } from './fetch-debian.ts'

const cache = join(import.meta.dirname, '../../node_modules/.cache/platform-tools')

/** undefined: not installed, and not available from the archive. */
export const findPrometheus = () => find('prometheus')
export const findPromtool = () => find('promtool')

async function find(name: string): Promise<string | undefined> {
  const found = await search(name)
  if (found) return found
  await fetchDebian({ name, cache, suites: [['trixie', 'sid']] })
  return search(name)
}

async function search(name: string): Promise<string | undefined> {
  const kept = (await readdir(cache).catch(() => [])).filter(one => one.startsWith(`${name}-`))
  for (const file of [name, ...kept.map(one => join(cache, one, 'usr/bin', name))])
    if ((await exec(file, ['--version'])).code === 0) return file
  return undefined
}
