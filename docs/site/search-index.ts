// The search index: one entry for each section of each page, for MiniSearch in the browser.

import MiniSearch from 'minisearch'
import type { SitePage } from './pages.ts'
import type { Rendered } from './render.ts'

/** site.js reads the index with the same options. */
export const searchOptions = { fields: ['heading', 'title', 'text'], storeFields: ['heading', 'title', 'url'] }

/** A script instead of JSON, because a page from a file may load scripts but no data. */
export function searchIndex(pages: readonly { readonly page: SitePage; readonly rendered: Rendered }[]): string {
  const index = new MiniSearch(searchOptions)
  for (const [at, { page, rendered }] of pages.entries())
    for (const [number, { anchor, heading, level, text }] of rendered.sections.entries())
      index.add({
        id: `${at}.${number}`,
        title: page.title,
        heading: level === 1 ? page.title : heading,
        text,
        url: level === 1 ? page.target : `${page.target}#${anchor}`,
      })
  return `globalThis.siteSearch = ${JSON.stringify({ options: searchOptions, index: JSON.stringify(index) })}\n`
}
