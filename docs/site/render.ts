// Renders the Markdown of a page: headings with anchors, links to other pages, and the sections for the search.

import { posix } from 'node:path'
import { Marked, type Token, type Tokens } from 'marked'

export type Section = {
  readonly anchor: string
  readonly heading: string
  readonly level: number
  readonly text: string
}
export type Rendered = {
  readonly html: string
  /** In order. The first one is the page itself. */
  readonly sections: readonly Section[]
  /** Internal links: the path in the repository, and the anchor. */
  readonly links: readonly { readonly to: string; readonly anchor: string }[]
}

/** Finds the URL of a path in the repository, relative to the rendered page, and the title if it is a page. */
export type Locate = (path: string) => { readonly url: string; readonly title?: string | undefined }

export function renderPage(source: string, markdown: string, locate: Locate): Rendered {
  const anchors = openAnchors()
  const sections: { anchor: string; heading: string; level: number; text: string }[] = []
  const links: { to: string; anchor: string }[] = []
  const resolve = (href: string) => {
    if (/^[a-z]+:/i.test(href)) return { url: href }
    const [path = '', anchor = ''] = href.split('#')
    const to = path === '' ? source : posix.join(posix.dirname(source), path)
    links.push({ to, anchor })
    const { url, title } = locate(to)
    return { url: path === '' ? href : `${url}${anchor && `#${anchor}`}`, title, path }
  }
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth }: Tokens.Heading): string {
        const heading = textOf(tokens)
        const anchor = anchors(heading)
        sections.push({ anchor, heading, level: depth, text: '' })
        const inner = this.parser.parseInline(tokens)
        if (depth === 1) return `<h1 id="${anchor}">${inner}</h1>\n`
        return `<h${depth} id="${anchor}">${inner} <a class="anchor" href="#${anchor}" aria-label="Link to ${escaped(heading)}">#</a></h${depth}>\n`
      },
      link({ href, tokens }: Tokens.Link): string {
        const { url, title, path } = resolve(href)
        // Readers of the site do not see files.
        const isFileName = title !== undefined && [path, path && posix.basename(path)].includes(textOf(tokens))
        return `<a href="${escaped(url)}">${isFileName ? escaped(title) : this.parser.parseInline(tokens)}</a>`
      },
      image({ href, text }: Tokens.Image): string {
        return `<img src="${escaped(resolve(href).url)}" alt="${escaped(text)}" loading="lazy">`
      },
      code({ text, lang = '' }: Tokens.Code): string {
        const [language = ''] = lang.split(' ')
        const isOutput = language === 'text'
        const label = isOutput ? 'Output' : language === 'sh' ? 'Commands' : 'Code'
        // Long lines scroll, and so the block must be reachable by keyboard.
        return `<pre class="${isOutput ? 'output' : 'code'}" tabindex="0" role="group" aria-label="${label}"><code>${escaped(text)}</code></pre>\n`
      },
      table({ header, rows }: Tokens.Table): string {
        const cells = (row: readonly Tokens.TableCell[], tag: 'th' | 'td') =>
          row
            .map(({ tokens }) => {
              const inner = this.parser.parseInline(tokens)
              // A header without text is an empty corner.
              const own = inner === '' ? 'td' : tag
              return `<${own}>${inner}</${own}>`
            })
            .join('')
        const body = rows.map(row => `<tr>${cells(row, 'td')}</tr>`).join('\n')
        return `<div class="table" tabindex="0" role="group" aria-label="Table"><table><thead><tr>${cells(header, 'th')}</tr></thead><tbody>${body}</tbody></table></div>\n`
      },
    },
  })
  const tokens = marked.lexer(markdown)
  const html = marked.parser(tokens)
  fill(sections, tokens)
  return { html, sections, links }
}

/** Adds the text of each section, in the order of its headings. */
function fill(sections: { text: string }[], tokens: readonly Token[]): void {
  let index = -1
  for (const token of tokens) {
    if (token.type === 'heading') index++
    else if (sections[index]) (sections[index] as { text: string }).text += ` ${textOf([token])}`
  }
}

/** The words of tokens, with code, without markup and comments. */
function textOf(tokens: readonly Token[]): string {
  return tokens
    .map(token => {
      if (token.type === 'html') return ''
      if (token.type === 'table') {
        const { header, rows } = token as Tokens.Table
        return [header, ...rows].flatMap(row => row.map(cell => textOf(cell.tokens))).join(' ')
      }
      if (token.type === 'list') return (token as Tokens.List).items.map(item => textOf(item.tokens)).join(' ')
      if ('tokens' in token && token.tokens) return textOf(token.tokens)
      return 'text' in token ? unescaped(String(token.text)) : ' '
    })
    .join('')
}

/** As on GitHub, so that links work in both. */
function openAnchors(): (heading: string) => string {
  const used = new Map<string, number>()
  return heading => {
    const plain = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, '')
      .replaceAll(' ', '-')
    const count = used.get(plain) ?? 0
    used.set(plain, count + 1)
    return count === 0 ? plain : `${plain}-${count}`
  }
}

const entities: { readonly [character: string]: string } = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
export const escaped = (text: string): string => text.replace(/[&<>"]/g, one => entities[one] ?? one)
const unescaped = (text: string) =>
  text.replace(/&(?:amp|lt|gt|quot|#39);/g, one =>
    one === '&#39;' ? "'" : (Object.entries(entities).find(([, code]) => code === one)?.[0] ?? one),
  )
