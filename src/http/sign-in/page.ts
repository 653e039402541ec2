// The frame of every sign-in page: style, headers, and a content security policy without scripts.

import { hash } from 'node:crypto'
import type { Answer } from '../../serving/respond.ts'
import { Html, html } from './html.ts'

// The colours and fonts are those of the console.
const style = `
:root{color-scheme:light dark;--back:#fbfbfc;--card:#fff;--text:#1b1f27;--quiet:#555d6b;--line:#c3c8d1;--main:#3454d1;--on-main:#fff;--bad:#a8221b;--warn:#fdf3e1;--warn-text:#6b4000}
@media (prefers-color-scheme:dark){:root{--back:#101318;--card:#161a21;--text:#e8ebf0;--quiet:#a8b0be;--line:#465062;--main:#8aa2ff;--on-main:#0d1224;--bad:#f2958e;--warn:#35280f;--warn-text:#f0cf97}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:24px 16px;background:var(--back);color:var(--text);font:16px/1.5 -apple-system,'Segoe UI',Roboto,Ubuntu,Cantarell,'Noto Sans','DejaVu Sans',sans-serif}
main{width:100%;max-width:440px;background:var(--card);border:1px solid var(--line);border-radius:12px;padding:32px}
h1{font-size:1.375rem;line-height:1.3;margin:0 0 16px}
h2{font-size:1rem;margin:24px 0 8px}
p{margin:0 0 16px}
.quiet{color:var(--quiet)}
.bad{color:var(--bad)}
.brand{display:flex;align-items:center;gap:10px;font-weight:600;margin:0 0 24px}
.brand svg{width:28px;height:28px}
.warn{background:var(--warn);color:var(--warn-text);border-radius:8px;padding:12px 16px}
dl{margin:0 0 24px;display:grid;grid-template-columns:max-content 1fr;gap:8px 16px}
dt{color:var(--quiet)}
dd{margin:0;overflow-wrap:anywhere}
ul{margin:0;padding-left:20px}
.stack{display:grid;gap:12px}
a.button,button{display:block;width:100%;min-height:44px;padding:10px 16px;border-radius:8px;border:1px solid var(--main);background:var(--main);color:var(--on-main);font:inherit;font-weight:600;text-align:center;text-decoration:none;cursor:pointer}
button.plain,a.plain{background:transparent;color:var(--text);border-color:var(--line)}
label{display:block;font-weight:600;margin:0 0 4px}
input{width:100%;min-height:44px;padding:10px 12px;border:1px solid var(--quiet);border-radius:8px;background:var(--card);color:var(--text);font:inherit}
input.code{font:600 1.25rem/1.2 ui-monospace,'SF Mono','Cascadia Code','DejaVu Sans Mono',monospace;letter-spacing:.1em;text-transform:uppercase}
:focus-visible{outline:3px solid var(--main);outline-offset:2px}
hr{border:0;border-top:1px solid var(--line);margin:24px 0}
code{font-family:ui-monospace,'SF Mono','Cascadia Code','DejaVu Sans Mono',monospace;overflow-wrap:anywhere}
`
const logo = new Html(
  '<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="9" fill="var(--main)"/><path d="M8 12.5 16 8l8 4.5L16 17z" fill="var(--on-main)"/><path d="m8 17.5 8 4.5 8-4.5" fill="none" stroke="var(--on-main)" stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round"/></svg>',
)
const styleHash = hash('sha256', style, 'base64')
const encoder = new TextEncoder()

export type PageOptions = {
  readonly code?: number
  readonly title: string
  readonly body: Html
  /** Origins that a form of the page leads to after a redirect. */
  readonly formTargets?: readonly string[]
  readonly headers?: Answer['headers']
}

/** For every response of sign-in. */
const privateHeaders = {
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}

export function page({ code = 200, title, body, formTargets = [], headers = {} }: PageOptions): Answer {
  const { text } = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title} – platform</title><style>${new Html(style)}</style></head>
<body><main><p class="brand">${logo} platform</p>
<h1>${title}</h1>
${body}
</main></body></html>
`
  return {
    code,
    type: 'text/html; charset=utf-8',
    body: encoder.encode(text),
    headers: { ...privateHeaders, ...policy(formTargets), ...headers },
  }
}

const policy = (formTargets: readonly string[]) => ({
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${styleHash}'`,
    `form-action ${["'self'", ...formTargets].join(' ')}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
})

export const redirect = (location: string, headers: Answer['headers'] = {}): Answer => ({
  code: 303,
  type: 'text/plain; charset=utf-8',
  body: encoder.encode('See other\n'),
  headers: { ...privateHeaders, Location: location, ...headers },
})

export const json = (code: number, value: unknown, headers: Answer['headers'] = {}): Answer => ({
  code,
  type: 'application/json',
  body: encoder.encode(`${JSON.stringify(value)}\n`),
  headers: { ...privateHeaders, ...headers },
})
