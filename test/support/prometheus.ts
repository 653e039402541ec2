// Finds Prometheus on this machine, or fetches it from Debian's archive.

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { exec } from './exec.ts'
import { fetchDebian } from './fetch-debian.ts'

const cache = join(import.meta.dirname, '../../node_modules/.cache/platform-tools')

/** undefined: not installed, and not available from the archive. */
export async function findPrometheus(): Promise<string | undefined> {
  const found = await search()
  if (found) return found
  await fetchDebian({ name: 'prometheus', cache, suites: [['trixie', 'sid']] })
  return search()
}

async function search(): Promise<string | undefined> {
  const kept = (await readdir(cache).catch(() => [])).filter(name => name.startsWith('prometheus-'))
  for (const file of ['prometheus', ...kept.map(name => join(cache, name, 'usr/bin/prometheus'))])
    if ((await exec(file, ['--version'])).code === 0) return file
  return undefined
}
