// Serves the bundled console below /console/: hashed assets, and one page for every other path.

import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { methodNotAllowed, unknownPath } from '../api/errors.ts'
import type { Exchange } from '../serving/exchange.ts'
import { type Answer, textAnswer } from '../serving/respond.ts'
import { redirect } from './sign-in/page.ts'

/** Answers a request below /console; undefined: the path belongs to somebody else. */
export type Console = (exchange: Exchange) => Promise<Answer> | undefined

const types: { readonly [extension: string]: string } = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

type Asset = { readonly type: string; readonly body: Uint8Array; readonly brotli: Uint8Array | undefined }
type Files = { readonly page: string; readonly assets: ReadonlyMap<string, Asset> }

/** `directory`: the output of `npm run prepare`. It is read at the first request, because most starts serve no browser. */
export function openConsole(directory: string): Console {
  let files: Promise<Files> | undefined
  const load = () => {
    files ??= readFiles(directory).catch(error => {
      files = undefined
      throw error
    })
    return files
  }
  const serve = async (exchange: Exchange) => {
    const { path, method } = exchange
    if (method !== 'GET' && method !== 'HEAD')
      throw methodNotAllowed(method.toLowerCase(), { group: '', plural: path, kind: path })
    if (path === '/' || path === '/console') return redirect('console/')
    const found = await load().catch(() => undefined)
    if (!found) return notBuilt
    const rest = path.slice('/console/'.length)
    if (!rest.startsWith('assets/')) return page(found.page, rest)
    const asset = found.assets.get(rest.slice('assets/'.length))
    if (!asset) throw unknownPath()
    return answerOf(asset, exchange)
  }
  return exchange => {
    const { path } = exchange
    const isOurs = path.startsWith('/console') && (path.length === 8 || path[8] === '/')
    return isOurs || (path === '/' && wantsPage(exchange)) ? serve(exchange) : undefined
  }
}

const notBuilt = textAnswer(
  404,
  'The console is not built. Run `npm run prepare` in the checkout, and load this page again.\n',
)

const wantsPage = ({ request }: Exchange) => String(request.headers.accept ?? '').includes('text/html')

async function readFiles(directory: string): Promise<Files> {
  const below = join(directory, 'assets')
  const names = await readdir(below)
  const assets = await Promise.all(
    names
      .filter(name => !name.endsWith('.br'))
      .map(async name => {
        const type = types[extname(name)] ?? 'application/octet-stream'
        const brotli = names.includes(`${name}.br`) ? await readFile(join(below, `${name}.br`)) : undefined
        return [name, { type, body: await readFile(join(below, name)), brotli }] as const
      }),
  )
  return { page: await readFile(join(directory, 'index.html'), 'utf8'), assets: new Map(assets) }
}

/** Asset names contain a hash of the content, so browsers may keep them forever. */
function answerOf({ type, body, brotli }: Asset, { request }: Exchange): Answer {
  const takesBrotli = /(^|[\s,])br([\s,;]|$)/.test(String(request.headers['accept-encoding'] ?? ''))
  const headers = {
    'Cache-Control': 'public, max-age=31536000, immutable',
    // An asset that somebody opens as a page of its own runs no script.
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
    'X-Content-Type-Options': 'nosniff',
    'Cross-Origin-Resource-Policy': 'same-origin',
    Vary: 'Accept-Encoding',
  }
  return brotli && takesBrotli
    ? { code: 200, type, body: brotli, headers: { ...headers, 'Content-Encoding': 'br' } }
    : { code: 200, type, body, headers }
}

const encoder = new TextEncoder()

/** `rest`: the path below /console/. The base URL is relative to it, so it is right behind any prefix. */
function page(template: string, rest: string): Answer {
  const nonce = randomBytes(16).toString('base64')
  const base = '../'.repeat(rest.split('/').length - 1) || './'
  const text = template.replace('<base href="./"', `<base href="${base}"`).replace('nonce=""', `nonce="${nonce}"`)
  return {
    code: 200,
    type: 'text/html; charset=utf-8',
    body: encoder.encode(text),
    headers: {
      'Cache-Control': 'no-store',
      'Content-Security-Policy': policy(nonce),
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=()',
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
      'X-Frame-Options': 'DENY',
    },
  }
}

const policy = (nonce: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "style-src-attr 'none'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'self'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
