// `npm run docs:site`: writes the documentation as a static site. It works from any path, also from the file system, and loads nothing else.

import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, posix } from 'node:path'
import { parseArgs } from 'node:util'
import { layout } from './layout.ts'
import { readGroups, type SitePage } from './pages.ts'
import { type Locate, renderPage } from './render.ts'
import { searchIndex } from './search-index.ts'

const checkout = join(import.meta.dirname, '../..')

export type SiteOptions = {
  readonly output: string /** The directory of README.md and docs/. */
  readonly root?: string
}

/** Returns the written pages. Throws with all dead links. */
export function buildSite({ output, root = checkout }: SiteOptions): readonly SitePage[] {
  const groups = readGroups(root)
  const pages = groups.flatMap(group => group.pages)
  const targets = new Map(pages.map(({ source, target }) => [source, target]))
  const copied = new Set<string>()
  const first = (directory: string) => pages.find(({ source }) => posix.dirname(source) === directory)?.target

  /** Pages become HTML, a directory means its first page, and other files are copied. */
  function targetOf(path: string): string | undefined {
    const page = targets.get(path)
    if (page !== undefined) return page
    const file = join(root, path)
    if (!existsSync(file)) return undefined
    if (statSync(file).isDirectory()) return first(path.replace(/\/$/, ''))
    copied.add(path)
    return `files/${path}`
  }

  const rendered = pages.map(page => {
    const locate: Locate = path => {
      const target = targetOf(path)
      return {
        url: target === undefined ? '' : posix.relative(posix.dirname(page.target), target),
        title: pages.find(({ source }) => source === path)?.title,
      }
    }
    return { page, rendered: renderPage(page.source, page.markdown, locate) }
  })
  const anchors = new Map(
    rendered.map(one => [one.page.source, new Set(one.rendered.sections.map(({ anchor }) => anchor))]),
  )
  const dead = rendered.flatMap(({ page, rendered: { links } }) =>
    links
      .filter(({ to, anchor }) => targetOf(to) === undefined || (anchor && anchors.get(to)?.has(anchor) === false))
      .map(({ to, anchor }) => `${page.source}: ${to}${anchor && `#${anchor}`} does not exist`),
  )
  if (dead.length) throw new Error(`dead links; correct them in the pages:\n${dead.join('\n')}`)

  rmSync(output, { recursive: true, force: true })
  const write = (target: string, text: string) => {
    mkdirSync(dirname(join(output, target)), { recursive: true })
    writeFileSync(join(output, target), text)
  }
  for (const { page, rendered: one } of rendered) write(page.target, layout(page, one, groups))
  write('search-index.js', searchIndex(rendered))
  for (const path of copied) {
    mkdirSync(dirname(join(output, 'files', path)), { recursive: true })
    copyFileSync(join(root, path), join(output, 'files', path))
  }
  cpSync(join(import.meta.dirname, 'assets'), output, { recursive: true })
  copyFileSync(join(checkout, 'src/console/icon.svg'), join(output, 'icon.svg'))
  const library = join(dirname(createRequire(import.meta.url).resolve('minisearch')), '../umd/index.js')
  // The source map is not part of the site.
  write('minisearch.js', readFileSync(library, 'utf8').replace(/^\/\/# sourceMappingURL.*$/m, ''))
  return pages
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { output: { type: 'string', default: join(checkout, 'dist/site') } } })
  const pages = buildSite(values)
  console.log(`wrote ${pages.length} pages to ${values.output}; open index.html, or serve the directory from any path`)
}
