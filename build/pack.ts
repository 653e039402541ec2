// Packs the package as it is published, and returns the file.

import { join } from 'node:path'
import { run } from './run.ts'
import type { Source } from './source.ts'

export async function pack({ root, name, version }: Source, directory: string): Promise<string> {
  // npm builds first: `prepack` in package.json.
  await run('npm', ['pack', '--silent', '--pack-destination', directory], { cwd: root })
  return join(directory, `${name}-${version}.tgz`)
}
