// Chromium for the bench of the console: signed-in pages, and the CPU time of their main thread.

import { type Browser, type BrowserContext, type CDPSession, chromium, type Page } from 'playwright-core'
import { findChromium } from '../test/support/chromium.ts'
import type { Server } from './processes.ts'

export type ConsoleBrowser = {
  readonly url: string
  /** A page with a session. A fresh one has an empty cache. */
  open(options?: { readonly fresh?: boolean }): Promise<Tab>
  close(): Promise<void>
}

export type Tab = {
  readonly page: Page
  /** Seconds of CPU that the main thread has used since the page was opened. */
  cpu(): Promise<Cpu>
  /** Bytes of the JavaScript heap after a collection. */
  heap(): Promise<number>
  /** The tasks of the main thread while `work` runs. */
  tasks(work: () => Promise<void>): Promise<readonly Task[]>
  close(): Promise<void>
}

export type Cpu = { readonly all: number; readonly script: number; readonly layout: number }
/** Milliseconds: from start to end, and of CPU. */
export type Task = { readonly wall: number; readonly cpu: number }

/**
 * `bench.first` and `bench.all` resolve to the times of the first rows and of the complete list, since the navigation.
 * `bench.received` counts events: the only tab leads, so it passes all of them on to others.
 */
const timing = `
  window.bench = { received: 0 }
  const { postMessage } = BroadcastChannel.prototype
  BroadcastChannel.prototype.postMessage = function (message) {
    if (message.type === 'events') bench.received += message.events.length
    bench.check?.()
    return postMessage.call(this, message)
  }
  const shown = selector => new Promise(done => {
    const seen = new MutationObserver(() => {
      if (!document.querySelector(selector)) return
      seen.disconnect()
      done(performance.now())
    })
    seen.observe(document, { childList: true, subtree: true, attributes: true })
  })
  bench.first = shown('[role=grid] [role=row][aria-rowindex="2"]')
  bench.all = shown('main [role=status] [data-state=live]')
`

export async function openConsoleBrowser(server: Server): Promise<ConsoleBrowser> {
  const found = await findChromium()
  if (!found) throw new Error('Chromium is not installed and cannot be fetched')
  const browser = await chromium.launch({
    executablePath: found.executablePath,
    env: { ...process.env, ...found.env } as { [name: string]: string },
    args: ['--no-sandbox'],
  })
  const url = `${server.http}/console/`
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  await page.goto(url)
  await page.getByLabel('Access key').fill(server.key)
  await page.getByRole('button', { name: 'Sign in with an access key' }).click()
  await page.locator('main#content').waitFor()
  const storageState = await context.storageState()
  await page.close()
  return {
    url,
    async open({ fresh = false } = {}) {
      const own = fresh ? await browser.newContext({ storageState, viewport: { width: 1280, height: 800 } }) : context
      const tab = await openTab(browser, own)
      const close = () => (fresh ? own.close() : tab.close())
      return { ...tab, close }
    },
    close: () => browser.close(),
  }
}

async function openTab(browser: Browser, context: BrowserContext): Promise<Tab> {
  const page = await context.newPage()
  await page.addInitScript({ content: timing })
  const session = await context.newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  return {
    page,
    cpu: () => cpuOf(session),
    async heap() {
      await session.send('HeapProfiler.collectGarbage')
      return (await session.send('Runtime.getHeapUsage')).usedSize
    },
    async tasks(work) {
      await browser.startTracing(page, { categories: ['toplevel', 'disabled-by-default-devtools.timeline'] })
      await work()
      return tasksIn(await browser.stopTracing())
    },
    close: () => page.close(),
  }
}

async function cpuOf(session: CDPSession): Promise<Cpu> {
  const { metrics } = await session.send('Performance.getMetrics')
  const of = (name: string) => metrics.find(metric => metric.name === name)?.value ?? Number.NaN
  return {
    all: of('TaskDuration'),
    script: of('ScriptDuration'),
    layout: of('LayoutDuration') + of('RecalcStyleDuration'),
  }
}

type TraceEvent = {
  readonly name: string
  readonly pid: number
  readonly tid: number
  readonly dur?: number
  readonly tdur?: number
  readonly args?: { readonly name?: string }
}

/** Other renderers are idle, so the page has the main thread with the most tasks. */
function tasksIn(trace: Buffer): readonly Task[] {
  const { traceEvents } = JSON.parse(trace.toString('utf8')) as { readonly traceEvents: readonly TraceEvent[] }
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid} ${tid}`
  const threads = new Map<string, Task[]>()
  for (const event of traceEvents)
    if (event.name === 'thread_name' && event.args?.name === 'CrRendererMain') threads.set(threadOf(event), [])
  for (const event of traceEvents)
    if (event.name === 'RunTask' && event.dur !== undefined)
      threads.get(threadOf(event))?.push({ wall: event.dur / 1000, cpu: (event.tdur ?? Number.NaN) / 1000 })
  return [...threads.values()].toSorted((one, other) => other.length - one.length)[0] ?? []
}
