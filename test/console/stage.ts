// A real server and a real Chromium for tests of the console. Fails a suite with a page error or a report of the content security policy.

import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { findChromium } from '../support/chromium.ts'
import { closeAll } from '../support/close-all.ts'
import { type Server, startServer } from '../support/server.ts'

export const found = await findChromium()

export type ConsoleStage = {
  readonly server: Server
  /** The address of the console, with a slash at the end. */
  readonly url: string
  /** A new browser profile. */
  context(options?: Parameters<Browser['newContext']>[0]): Promise<BrowserContext>
  /** A page in a new profile, signed in with a key; default: the administrator's. */
  signedIn(options?: {
    readonly key?: string
    readonly path?: string
    readonly context?: BrowserContext
  }): Promise<Page>
  /** Sends a request as administrator, and fails unless it succeeds. */
  // biome-ignore lint/suspicious/noExplicitAny: the body of a response is any JSON
  ask(method: string, path: string, body?: unknown, headers?: { [name: string]: string }): Promise<any>
  close(): Promise<void>
}

export type StageOptions = {
  /** Which listener: HTTP on loopback, or HTTPS. */
  readonly scheme?: 'http' | 'https'
  /** Puts a proxy in front that serves the platform below this path. */
  readonly prefix?: string
  readonly args?: readonly string[]
  /** An error that a test of the suite causes. All others fail the suite. */
  readonly caused?: RegExp
}

export const ours = '/apis/management.platform.sh/v1'

export async function openConsoleStage({
  scheme = 'http',
  prefix,
  args = [],
  caused,
}: StageOptions = {}): Promise<ConsoleStage> {
  assert.ok(found, 'Chromium is missing')
  const server = await startServer({ args: ['--limits-unknown-keys', '0', ...args] })
  const proxy = prefix === undefined ? undefined : await startProxy(server.http, prefix)
  const browser = await chromium.launch({
    executablePath: found.executablePath,
    env: { ...process.env, ...found.env } as { [name: string]: string },
    args: ['--no-sandbox'],
  })
  const problems: string[] = []
  const url = `${proxy?.url ?? server[scheme]}/console/`
  const context: ConsoleStage['context'] = async options => {
    const opened = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      ignoreHTTPSErrors: true,
      locale: 'en-GB',
      ...options,
    })
    await opened.addInitScript({
      content: `addEventListener('securitypolicyviolation', event =>
        console.error('CSP', event.violatedDirective, event.blockedURI, event.sample))`,
    })
    opened.on('weberror', error => problems.push(error.error().message))
    opened.on('console', message => {
      const isExpected = /^Failed to load resource/.test(message.text()) || caused?.test(message.text())
      if (message.type() === 'error' && !isExpected) problems.push(message.text())
    })
    return opened
  }
  return {
    server,
    url,
    context,
    async signedIn({ key = server.adminKey, path = '', context: given } = {}) {
      const page = await (given ?? (await context())).newPage()
      await page.goto(url + path)
      await page.getByLabel('Access key').fill(key)
      await page.getByRole('button', { name: 'Sign in with an access key' }).click()
      await page.locator('main#content').waitFor()
      return page
    },
    async ask(method, path, body, headers) {
      const {
        status,
        text,
        body: answer,
      } = await server.request(method, path, {
        ...(body === undefined ? {} : { body }),
        ...(headers ? { headers } : {}),
      })
      assert.ok(status < 300, `${method} ${path}: ${status} ${text}`)
      return answer
    },
    async close() {
      await closeAll(
        () => browser.close(),
        () => proxy?.close() ?? Promise.resolve(),
        server.stop,
      )
      assert.deepEqual(problems, [])
    },
  }
}

type Proxy = { readonly url: string; close(): Promise<void> }

/** A reverse proxy that removes a prefix, as in front of many installations. */
async function startProxy(target: string, prefix: string): Promise<Proxy> {
  const { hostname, port } = new URL(target)
  const proxy = createServer((incoming, outgoing) => {
    const path = incoming.url ?? ''
    if (!path.startsWith(`${prefix}/`)) return void outgoing.writeHead(404).end('outside of the prefix')
    const { method = 'GET', headers } = incoming
    const upstream = request({ hostname, port, path: path.slice(prefix.length), method, headers }, answer => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      outgoing.flushHeaders()
      answer.pipe(outgoing)
    })
    upstream.on('error', () => outgoing.destroy())
    outgoing.on('close', () => upstream.destroy())
    incoming.pipe(upstream)
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  const { port: own } = proxy.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${own}${prefix}`,
    close: () =>
      new Promise(resolve => {
        proxy.closeAllConnections()
        proxy.close(() => resolve())
      }),
  }
}
