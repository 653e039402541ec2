// The pages of the site: README and every page of docs/, in groups by audience.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type SitePage = {
  /** Path in the repository. */
  readonly source: string
  /** Path in the site. */
  readonly target: string
  readonly title: string
  readonly markdown: string
}
export type Group = { readonly name: string; readonly pages: readonly SitePage[] }

/** Pages that are not listed here come last, so that no page is missing. */
const groups: { readonly [name: string]: readonly string[] } = {
  'Start here': ['README.md', 'docs/QUICK-START.md'],
  'Run it': ['INSTALL', 'KUBERNETES', 'OPERATIONS', 'HIGH-AVAILABILITY', 'MONITORING', 'SIGN-IN'].map(inDocs),
  'Use it': ['CLI', 'CONSOLE', 'SECRETS', 'ACCESS', 'GITOPS', 'TERRAFORM', 'CLIENT'].map(inDocs),
  Clusters: ['CONNECTED-CLUSTERS', 'GATEWAY', 'CLUSTERS'].map(inDocs),
  'Virtual clusters': ['SYNCER', 'PATCHES', 'TROUBLESHOOTING'].map(inDocs),
  Reference: ['KINDS', 'SPEC', 'THREATS', 'BENCH', 'PROOF'].map(inDocs),
  Development: ['ARCHITECTURE', 'DECISIONS'].map(inDocs),
}
const decisions = 'Design decisions'
const others = 'More'

function inDocs(name: string): string {
  return `docs/${name}.md`
}

export function readGroups(root: string): readonly Group[] {
  const sources = ['README.md', ...globSync('docs/**/*.md', { cwd: root }).toSorted()]
  const pages = new Map(sources.map(source => [source, readPage(root, source)]))
  const take = (source: string) => {
    const page = pages.get(source)
    pages.delete(source)
    return page ? [page] : []
  }
  const listed = Object.entries(groups).map(([name, of]) => ({ name, pages: of.flatMap(take) }))
  const decided = sources.filter(source => source.startsWith('docs/decisions/')).flatMap(take)
  return [...listed, { name: decisions, pages: decided }, { name: others, pages: [...pages.values()] }].filter(
    group => group.pages.length,
  )
}

function readPage(root: string, source: string): SitePage {
  const markdown = readFileSync(join(root, source), 'utf8')
  const title = /^# (.+)$/m.exec(markdown)?.[1]?.replaceAll('`', '')
  if (title === undefined)
    throw new Error(`${source} has no heading of the first level: begin it with "# " and a title`)
  const target =
    source === 'README.md' ? 'index.html' : source.slice('docs/'.length).toLowerCase().replace(/\.md$/, '.html')
  return { source, target, title, markdown }
}
