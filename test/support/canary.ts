// Canaries: every secret that a test passes to the command line. The tests then search files, messages and arguments for them.

import { globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Shorter values would match by chance. */
const shortest = 7

export type Canaries = {
  /** Adds a value to search for, as it is and in other encodings. */
  note(value: string): void
  /** The first canary in a text. */
  in(text: string | Uint8Array): string | undefined
  /** Names of files below a directory that contain one; a missing directory contains none. */
  below(directory: string): string[]
}

export function openCanaries(): Canaries {
  const forms = new Map<string, string>()
  const find = (text: string | Uint8Array) => {
    const bytes = Buffer.from(text as string)
    for (const [form, value] of forms) if (bytes.includes(form)) return value
    return undefined
  }
  return {
    note(value) {
      const plain = value.trim()
      if (plain.length < shortest || plain.length > 4000 || /^(.)\1*$/.test(plain)) return
      const bytes = Buffer.from(plain)
      // Inside a longer text its base64 may start at any of three offsets; characters that depend on the neighbours are
      // cut off.
      const based = [0, 1, 2].map(lead =>
        Buffer.concat([Buffer.alloc(lead), bytes])
          .toString('base64')
          .slice(lead + 2, -4),
      )
      const all = [plain, bytes.toString('hex'), encodeURIComponent(plain), ...based]
      for (const form of all) if (form.length >= shortest) forms.set(form, plain)
    },
    in: find,
    below(directory) {
      const names = globSync(['**/*', '**/.*', '.*/**/*'], { cwd: directory })
      return [...new Set(names)].toSorted().filter(name => {
        try {
          return statSync(join(directory, name)).isFile() && find(readFileSync(join(directory, name))) !== undefined
        } catch {
          return false
        }
      })
    },
  }
}
