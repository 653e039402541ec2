// The built package without sources, as npm installs it. cli.ts and gateway-process.ts start it.

import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** `packages`: the dependencies that may be loaded. Returns a directory that the caller must remove. */
export function build(packages: readonly string[]): string {
  const directory = mkdtempSync(join(tmpdir(), 'platform-bench-built-'))
  cpSync(join(root, 'bin'), join(directory, 'bin'), { recursive: true })
  cpSync(join(root, 'package.json'), join(directory, 'package.json'))
  mkdirSync(join(directory, 'node_modules'))
  for (const name of packages) symlinkSync(join(root, 'node_modules', name), join(directory, 'node_modules', name))
  const tsc = ['-p', 'tsconfig.build.json', '--outDir', join(directory, 'dist')]
  const { status, stdout } = spawnSync(join(root, 'node_modules/.bin/tsc'), tsc, { cwd: root, encoding: 'utf8' })
  if (status !== 0) throw new Error(stdout)
  return directory
}
