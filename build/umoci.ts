// Finds umoci, which assembles OCI images without a container engine: on this machine, or from Debian's archive.

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fetchDebian } from '../test/support/fetch-debian.ts'
import { run } from './run.ts'

const cache = join(import.meta.dirname, '../node_modules/.cache/platform-tools')

export async function findUmoci(): Promise<string> {
  const isInstalled = await run('umoci', ['--version']).then(
    () => true,
    () => false,
  )
  if (isInstalled) return 'umoci'
  await fetchDebian({ name: 'umoci', cache, suites: [['trixie', 'sid']] })
  const folder = readdirSync(cache).find(name => name.startsWith('umoci-'))
  if (!folder) throw new Error('cannot build an image: umoci is not installed, and Debian’s archive is unreachable')
  return join(cache, folder, 'usr/bin/umoci')
}
