// The console with 10,000 access keys: first load, rows, filter, scrolling, heap, and a burst of events.

import { setTimeout as pause } from 'node:timers/promises'
import { type ConsoleBrowser, openConsoleBrowser, type Tab, type Task } from './console-browser.ts'
import { change, fill, keys, openWriter } from './console-keys.ts'
import { type Figure, type Measured, median, number, told, toldWanted } from './measurement.ts'
import { remove, type Server, startServer } from './processes.ts'

const perSecond = 500
const rounds = 5

export async function measureConsole(seconds: number): Promise<Measured> {
  const server = await startServer()
  try {
    await fill(server)
    const browser = await openConsoleBrowser(server)
    try {
      return show(await measure(server, browser, seconds))
    } finally {
      await browser.close()
    }
  } finally {
    await server.stop()
    remove(server.directory)
  }
}

type Results = {
  readonly load: Load
  readonly rows: readonly RowTimes[]
  readonly filter: readonly FilterTimes[]
  readonly frames: readonly Frames[]
  readonly heap: number
  readonly burst: Burst
}

async function measure(server: Server, browser: ConsoleBrowser, seconds: number): Promise<Results> {
  const load = await firstLoad(browser)
  const rows: RowTimes[] = []
  for (let round = 0; round < rounds; round++) rows.push(await rowTimes(browser))
  const tab = await browser.open()
  await openList(tab, browser.url)
  const filter = await filterTimes(tab)
  const frames: Frames[] = []
  for (let round = 0; round < rounds; round++) frames.push(await scroll(tab))
  const burst = await eventBurst(tab, server, seconds * rounds)
  const heap = await tab.heap()
  await tab.close()
  return { load, rows, filter, frames, heap, burst }
}

/** Returns when the list is complete, in milliseconds since the navigation. */
async function openList({ page }: Tab, url: string): Promise<number> {
  await page.goto(`${url}keys`)
  return (await page.evaluate('bench.all')) as number
}

type Load = { readonly program: number; readonly data: number }

/** Bytes as sent, with an empty cache. */
async function firstLoad(browser: ConsoleBrowser): Promise<Load> {
  const tab = await browser.open({ fresh: true })
  await openList(tab, browser.url)
  const sizes = (await tab.page.evaluate(`
    ['navigation', 'resource'].flatMap(type => performance.getEntriesByType(type))
      .map(({ name, encodedBodySize }) => ({ name, size: encodedBodySize }))`)) as { name: string; size: number }[]
  await tab.close()
  const isProgram = ({ name }: { readonly name: string }) => name.startsWith(browser.url)
  const sum = (some: typeof sizes) => some.reduce((total, { size }) => total + size, 0)
  return { program: sum(sizes.filter(isProgram)), data: sum(sizes.filter(one => !isProgram(one))) }
}

/** Milliseconds; `cpu` is that of the page's main thread until the first rows are shown. */
type RowTimes = { readonly first: number; readonly all: number; readonly cpu: number }

async function rowTimes(browser: ConsoleBrowser): Promise<RowTimes> {
  const tab = await browser.open()
  const before = await tab.cpu()
  await tab.page.goto(`${browser.url}keys`, { waitUntil: 'commit' })
  const first = (await tab.page.evaluate('bench.first')) as number
  const after = await tab.cpu()
  const all = (await tab.page.evaluate('bench.all')) as number
  await tab.close()
  return { first, all, cpu: (after.all - before.all) * 1000 }
}

type FilterTimes = { readonly updated: number; readonly cpu: number }

/** From the key press until the page shows another number of rows, measured in the page. */
async function filterTimes({ page, cpu }: Tab): Promise<readonly FilterTimes[]> {
  await page.getByRole('searchbox').focus()
  const times: FilterTimes[] = []
  for (const key of Array.from({ length: rounds }, () => [
    '1',
    '2',
    '3',
    'Backspace',
    'Backspace',
    'Backspace',
  ]).flat()) {
    await page.evaluate(`{
      let pressed
      addEventListener('keydown', event => { pressed = event.timeStamp }, { capture: true, once: true })
      bench.filtered = new Promise((done, fail) => {
        setTimeout(() => fail(new Error('the filter changed nothing')), 10000)
        const seen = new MutationObserver(() => {
          seen.disconnect()
          done(performance.now() - pressed)
        })
        seen.observe(document.querySelector('main [role=status]'), { childList: true, subtree: true, characterData: true })
      })
      undefined // evaluate would wait for a promise
    }`)
    const before = await cpu()
    await page.keyboard.press(key)
    const updated = (await page.evaluate('bench.filtered')) as number
    times.push({ updated, cpu: ((await cpu()).all - before.all) * 1000 })
  }
  return times
}

type Frames = {
  readonly p95: number
  readonly middle: number
  readonly cpu: number
  readonly script: number
  readonly layout: number
}

/** 200 pixels per frame, which is fast scrolling by wheel. */
async function scroll({ page, cpu }: Tab): Promise<Frames> {
  const frames = 300
  const before = await cpu()
  const deltas = (await page.evaluate(`new Promise(done => {
    const frame = document.querySelector('[role=grid]')
    const deltas = []
    let last = performance.now()
    const step = now => {
      deltas.push(now - last)
      last = now
      frame.scrollTop += 200
      if (deltas.length < ${frames}) requestAnimationFrame(step)
      else done(deltas)
    }
    requestAnimationFrame(step)
  })`)) as number[]
  const after = await cpu()
  const sorted = deltas.toSorted((one, other) => one - other)
  const each = (name: 'all' | 'script' | 'layout') => ((after[name] - before[name]) * 1000) / frames
  return {
    p95: sorted[Math.floor(frames * 0.95)] as number,
    middle: median(deltas),
    cpu: each('all'),
    script: each('script'),
    layout: each('layout'),
  }
}

const changeOf = (index: number) => `Change ${index}`

type Burst = {
  readonly tasks: readonly Task[]
  readonly sent: number
  readonly received: number
  readonly seconds: number
  readonly cpu: number
}

/** Patches keys at a fixed rate, and follows the tasks of the page meanwhile. */
async function eventBurst(tab: Tab, server: Server, seconds: number): Promise<Burst> {
  const { page } = tab
  await page.evaluate(`{
    bench.expect = count => new Promise((done, fail) => {
      setTimeout(() => fail(new Error('only ' + bench.received + ' of ' + count + ' events arrived')), 30000)
      bench.check = () => { if (bench.received >= count) done() }
      bench.check()
    })
    undefined // evaluate cannot return a function
  }`)
  const writer = openWriter(server)
  const before = await tab.cpu()
  let sent = 0
  let took = 0
  const tasks = await tab.tasks(async () => {
    const started = performance.now()
    const writes: Promise<void>[] = []
    for (let at = 0; at < seconds * 1000; at = performance.now() - started) {
      for (; sent < (at / 1000) * perSecond; sent++) writes.push(change(writer, sent, changeOf(sent)))
      await pause(10)
    }
    await Promise.all(writes)
    took = (performance.now() - started) / 1000
    await page.evaluate(`bench.expect(${sent})`)
  })
  const after = await tab.cpu()
  writer.close()
  const received = (await page.evaluate('bench.received')) as number
  const last = changeOf(sent - 1)
  await page.getByRole('searchbox').fill(last)
  await page.getByRole('grid').getByText(last, { exact: true }).waitFor()
  return { tasks, sent, received, seconds: took, cpu: (after.all - before.all) / took }
}

const milliseconds = (value: number) => `${number(Math.round(value * 10) / 10)} ms`
const longest = 50

function show({ load, rows, filter, frames, heap, burst }: Results): Measured {
  const middle = <T>(some: readonly T[], pick: (one: T) => number) => median(some.map(pick))
  const most = (pick: (task: Task) => number) => Math.max(...burst.tasks.map(pick))
  const isLong = burst.tasks.filter(({ wall }) => wall > longest)
  const rate = Math.round(burst.received / burst.seconds)
  const figures: Figure[] = [
    {
      name: 'console: first load',
      value: load.program / 1000,
      unit: 'KB',
      wanted: 220,
      direction: 'at-most',
      note: `brotli; and ${number(load.data / 1000)} KB for ${keys} rows`,
    },
    {
      name: 'console: rows',
      value: middle(rows, ({ first }) => first),
      unit: 'ms',
      wanted: 500,
      direction: 'at-most',
      note: [
        `best ${milliseconds(Math.min(...rows.map(({ first }) => first)))}`,
        `${milliseconds(middle(rows, ({ cpu }) => cpu))} of CPU`,
        `all ${keys} after ${milliseconds(middle(rows, ({ all }) => all))}`,
      ].join(', '),
    },
    {
      name: 'console: filter',
      value: middle(filter, ({ updated }) => updated),
      unit: 'ms',
      wanted: 50,
      direction: 'at-most',
      note: `${milliseconds(middle(filter, ({ cpu }) => cpu))} of CPU, with drawing`,
    },
    {
      name: 'console: scrolling',
      value: middle(frames, ({ p95 }) => p95),
      unit: 'ms a frame, p95',
      wanted: 20,
      direction: 'at-most',
      note: [
        `median ${milliseconds(middle(frames, one => one.middle))}`,
        `${milliseconds(middle(frames, ({ cpu }) => cpu))} of CPU`,
        `of it script ${milliseconds(middle(frames, ({ script }) => script))}`,
        `layout ${milliseconds(middle(frames, ({ layout }) => layout))}`,
      ].join(', '),
    },
    {
      name: 'console: heap',
      value: heap / 1e6,
      unit: 'MB',
      wanted: 150,
      direction: 'at-most',
      note: `${keys} rows, after everything else`,
    },
    {
      name: 'console: events',
      value: most(({ cpu }) => cpu),
      unit: 'ms of CPU, longest task',
      wanted: longest,
      direction: 'at-most',
      note: [
        `${rate} events/s for ${Math.round(burst.seconds)} s`,
        `by the clock ${milliseconds(most(({ wall }) => wall))}, ${isLong.length} over ${longest} ms`,
        `${Math.round(burst.cpu * 100)}% of a core`,
      ].join('; '),
    },
  ]
  const lines = figures.map(
    (figure, at) =>
      `${(at ? '' : 'console').padEnd(17)}${figure.name.slice('console: '.length)}: ${told(figure.value, figure)} (wanted ${toldWanted(figure)}); ${figure.note}`,
  )
  return { text: lines.join('\n'), figures }
}
