// Writes tar archives that depend only on the content of the files: sorted, with one time, and owned by root.

import { readdirSync } from 'node:fs'
import { run } from './run.ts'

/** An entry with an owner or a mode of its own. Its content is not archived. */
export type SpecialDirectory = { readonly path: string; readonly owner: number; readonly mode: string }

type ArchiveOptions = {
  readonly tree: string
  readonly file: string
  /** Seconds since 1970. */
  readonly epoch: number
  readonly special?: readonly SpecialDirectory[]
}

export async function writeArchive({ tree, file, epoch, special = [] }: ArchiveOptions): Promise<void> {
  const at = ['--file', file, '--directory', tree, '--format=gnu', '--numeric-owner', `--mtime=@${epoch}`]
  const except = special.map(({ path }) => `--exclude=${path}`)
  const names = readdirSync(tree).toSorted()
  const ofRoot = ['--owner=0', '--group=0', '--mode=u=rwX,go=rX']
  await run('tar', ['--create', '--sort=name', ...at, ...ofRoot, '--anchored', ...except, ...names])
  for (const { path, owner, mode } of special) {
    const as = [`--owner=${owner}`, `--group=${owner}`, `--mode=${mode}`]
    await run('tar', ['--append', '--no-recursion', ...at, ...as, path])
  }
}
