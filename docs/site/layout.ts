// The HTML of a page: header with search, navigation, content and table of contents. No inline script or style, and no external file.
// Its own ids begin with site-, so that they differ from those of headings.

import { posix } from 'node:path'
import type { Group, SitePage } from './pages.ts'
import { escaped, type Rendered } from './render.ts'

/** Only files of the site itself. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"

export function layout(page: SitePage, { html, sections }: Rendered, groups: readonly Group[]): string {
  const base = posix.relative(posix.dirname(page.target), '.') || '.'
  const to = (target: string) => `${base}/${target}`
  const isHome = page.target === 'index.html'
  const title = isHome ? 'platform: documentation' : `${page.title} – platform`
  const contents = sections.filter(({ level }) => level === 2)
  return `<!doctype html>
<html lang="en" data-base="${base}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<link rel="icon" href="${to('icon.svg')}" type="image/svg+xml">
<link rel="stylesheet" href="${to('site.css')}">
<script src="${to('theme.js')}"></script>
<script src="${to('site.js')}" defer></script>
</head>
<body>
<a class="skip" href="#site-content">Skip to the content</a>
<header>
<button type="button" id="site-menu" class="button menu" aria-expanded="false" aria-controls="site-navigation">Menu</button>
<a class="home" href="${to('index.html')}"><img src="${to('icon.svg')}" alt="" width="24" height="24"> platform</a>
<div class="search" role="search" hidden>
<input id="site-search" type="search" placeholder="Search" aria-label="Search the documentation" autocomplete="off" spellcheck="false" role="combobox" aria-expanded="false" aria-controls="site-results" aria-autocomplete="list">
<kbd aria-hidden="true">/</kbd>
<div id="site-results" role="listbox" aria-label="Search results" hidden></div>
<p id="site-search-status" class="quiet" role="status"></p>
</div>
<button type="button" id="site-theme" class="button" hidden>Theme</button>
</header>
<div class="columns">
<nav id="site-navigation" aria-label="Pages">
${groups.map(group => navigation(group, page, to)).join('\n')}
</nav>
<main id="site-content" tabindex="-1">
${html}</main>
<aside>${contents.length > 1 ? `<nav aria-label="On this page"><h2>On this page</h2><ul>${contents.map(({ anchor, heading }) => `<li><a href="#${anchor}">${escaped(heading)}</a></li>`).join('')}</ul></nav>` : ''}</aside>
</div>
</body>
</html>
`
}

function navigation({ name, pages }: Group, current: SitePage, to: (target: string) => string): string {
  const links = pages.map(page => {
    const isCurrent = page === current ? ' aria-current="page"' : ''
    return `<li><a href="${to(page.target)}"${isCurrent}>${escaped(page.target === 'index.html' ? 'Overview' : page.title)}</a></li>`
  })
  const list = `<ul>${links.join('')}</ul>`
  // Many pages, which few readers need.
  if (pages.length > 10) {
    const isOpen = pages.includes(current) ? ' open' : ''
    return `<details${isOpen}><summary>${escaped(name)}</summary>${list}</details>`
  }
  return `<h2>${escaped(name)}</h2>${list}`
}
