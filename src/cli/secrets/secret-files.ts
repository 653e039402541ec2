// Writes secrets to private files for `platform run --file`, and removes them afterwards.

import { join, resolve } from 'node:path'
import { type Io, UsageError } from '../../host/command.ts'
import { quoted } from '../../host/sanitize.ts'
import type { SecretValues } from './secret-values.ts'

/** Paths by KEY or NAME[.KEY]. */
export type FileFlags = ReadonlyMap<string, string>

/** Throws UsageError. */
export function parseFiles(pairs: readonly string[]): FileFlags {
  const files = new Map<string, string>()
  const [wrong, twice]: [string[], string[]] = [[], []]
  for (const pair of pairs) {
    const [, name = '', path = ''] = /^([^=]+)=(.+)$/s.exec(pair) ?? []
    if (!path) wrong.push(`--file: ${quoted(pair)} must be NAME[.KEY]=PATH, such as tls.key=tls.key`)
    else if (files.has(name)) twice.push(`--file: ${quoted(name)} is given twice`)
    else files.set(name, resolve(path))
  }
  if (wrong.length + twice.length) throw new UsageError([...wrong, ...twice])
  return files
}

type Plan = {
  /** The flag that the path comes from, by path. */
  readonly directories: ReadonlyMap<string, string>
  readonly files: ReadonlyMap<string, { readonly name: string; readonly value: Buffer }>
}

/** A variable or a key becomes one file, a whole secret a directory with a file for each key. Throws UsageError. */
function planFiles({ values, files: secrets }: SecretValues, wanted: FileFlags): Plan {
  const directories = new Map<string, string>()
  const files = new Map<string, { name: string; value: Buffer }>()
  const problems: string[] = []
  const add = (name: string, path: string, value: Buffer) => {
    const other = directories.get(path) ?? files.get(path)?.name
    if (other !== undefined) problems.push(`--file ${other} and --file ${name} both write to ${path}`)
    else files.set(path, { name, value })
  }
  for (const [name, path] of wanted) {
    const found = values.get(name) ?? secrets.get(name) ?? new Map()
    if (Buffer.isBuffer(found)) {
      add(name, path, found)
      continue
    }
    const other = directories.get(path) ?? files.get(path)?.name
    if (other !== undefined) problems.push(`--file ${other} and --file ${name} both write to ${path}`)
    directories.set(path, name)
    for (const [key, value] of found)
      if (key === '.' || key === '..')
        problems.push(
          `--file ${name}: the key ${quoted(key)} cannot be a file name; write it with --file ${name}.KEY=PATH`,
        )
      else add(name, join(path, key), value)
  }
  if (problems.length) throw new UsageError(problems)
  return { directories, files }
}

/** Never overwrites an existing path, because it would be removed afterwards. Returns the function that removes the files. */
export async function writeFiles(io: Io, values: SecretValues, wanted: FileFlags): Promise<() => Promise<void>> {
  const plan = planFiles(values, wanted)
  const made: { readonly files: string[]; readonly directories: string[] } = { files: [], directories: [] }
  const remove = async () => {
    for (const path of made.files) await io.files.remove(path)
    for (const path of made.directories)
      if (!(await io.files.removeDirectory(path)))
        io.err(`platform: warning: ${path} is not empty, so it stays; the secret files in it are removed\n`)
  }
  const taken = (name: string, path: string) =>
    new UsageError([`--file ${name}: ${path} already exists; choose another path`])
  try {
    for (const [path, name] of plan.directories) {
      if (!(await io.files.makeDirectory(path))) throw taken(name, path)
      made.directories.push(path)
    }
    for (const [path, { name, value }] of plan.files) {
      if (!(await io.files.make(path, value))) throw taken(name, path)
      made.files.push(path)
    }
    return remove
  } catch (error) {
    await remove()
    throw error
  }
}
