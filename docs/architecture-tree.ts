// The file tree of docs/ARCHITECTURE.md: every file of src with its first line. `npm run docs` writes it, a test compares it.

import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

const root = join(import.meta.dirname, '..')
const [begin, end] = ['<!-- tree: begin -->', '<!-- tree: end -->']

/** The page with its tree made anew. */
export function architecturePage(page: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`the page needs ${begin} and ${end}`)
  return `${page.slice(0, from + begin.length)}\n${tree()}\n${page.slice(to)}`
}

function tree(): string {
  const files = globSync('src/**/*.{ts,tsx}', { cwd: root })
    .filter(path => !path.endsWith('.test.ts'))
    .toSorted((one, other) => compare(dirname(one), dirname(other)) || compare(one, other))
  const directories = [...new Set(files.map(path => dirname(path)))]
  return directories
    .map(directory => {
      const rows = files
        .filter(path => dirname(path) === directory)
        .map(path => `- \`${basename(path)}\`: ${firstLine(path)}`)
      return `\n### ${directory}\n\n${rows.join('\n')}`
    })
    .join('\n')
    .concat('\n')
}

const compare = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0)

function firstLine(path: string): string {
  const [line = ''] = readFileSync(join(root, path), 'utf8').split('\n', 1)
  return line
    .replace(/^\/\/ /, '')
    .replaceAll('<', '\\<')
    .replaceAll('*', '\\*')
}
