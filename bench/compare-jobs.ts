// The jobs of compare.ts, and how to run them: the same requests from the same generator for both servers.

import { type Stock, typeOf, type Way } from './compare-server.ts'
import { drive } from './load.ts'
import { median } from './measurement.ts'
import { cpuOf } from './processes.ts'

export type Sizes = {
  readonly seconds: number
  readonly rounds: number
  readonly objects: number
  readonly watchers: number
  readonly events: number
}
/** `pids`: the processes of the server, if they are known and on this machine. */
export type Side = { readonly way: Way; readonly stock: Stock; readonly pids: readonly number[] }
/** All created objects have the label `label=run`, and a name that begins with it. */
export type Run = Sizes & { readonly run: string; readonly signal: AbortSignal; readonly isByWrk: boolean }

export const label = 'bench.platform.sh/run'
const fewLabel = 'bench.platform.sh/few'
const few = 10

/** Successful responses per second; others are counted separately. */
export type Rate = {
  readonly perSecond: number
  /** Successful responses, or events. */
  readonly count: number
  readonly errors: number
  /** Microseconds of CPU for each; undefined: the processes are not known. */
  readonly cpu?: number | undefined
  readonly why?: string | undefined
  readonly p99?: number
}
/** `%d` is the number of the request, in a path below that of the objects. */
type Template = { readonly method: string; readonly path: string; readonly body?: object }
type Job = { readonly name: string; drive(side: Side, run: Run): Promise<Rate> }

/** Runs a job, and measures the CPU of the server meanwhile. */
export async function driveJob(job: Job, side: Side, run: Run): Promise<Rate> {
  const spent = () => side.pids.reduce((sum, pid) => sum + cpuOf(pid), 0)
  const before = spent()
  const rate = await job.drive(side, run)
  const cpu = side.pids.length && rate.count ? ((spent() - before) * 1000) / rate.count : undefined
  return { ...rate, cpu }
}

const requests = (name: string, connections: number, make: (side: Side, run: Run) => Template): Job => ({
  name,
  drive: (side, run) => (run.isByWrk ? driveByWrk : driveRequests)({ side, run, connections, ...make(side, run) }),
})
const one = ({ stock }: Side, { run }: Run) => `${stock.collection}/${run}-%d`
const selector = ({ run }: Run) => encodeURIComponent(`${fewLabel}=${run}-0`)

export const jobs: readonly Job[] = [
  requests('get one', 32, (side, run) => ({ method: 'GET', path: one(side, run) })),
  requests('page of 500', 8, ({ stock }) => ({ method: 'GET', path: `${stock.collection}?limit=500` })),
  requests('label list', 32, ({ stock }, run) => ({
    method: 'GET',
    path: `${stock.collection}?labelSelector=${selector(run)}`,
  })),
  requests('durable create', 64, ({ stock }, { run }) => ({
    method: 'POST',
    path: stock.collection,
    body: stock.object(`${run}-created-%d`, { [label]: run }),
  })),
  requests('patch', 64, (side, run) => ({ method: 'PATCH', path: one(side, run), body: side.stock.patch('%d') })),
  { name: 'watch', drive: driveWatch },
]

/** A selector matches about ten of them. */
export async function fill({ way, stock }: Side, { run, objects, signal }: Run): Promise<void> {
  const groups = Math.max(1, Math.floor(objects / few))
  await lanes(16, objects, signal, async index => {
    const labels = { [label]: run, [fewLabel]: `${run}-${index % groups}` }
    const { status, text } = await way.send(
      'POST',
      stock.collection,
      JSON.stringify(stock.object(`${run}-${index}`, labels)),
    )
    if (status !== 201) throw new Error(`${way.server}: a ${stock.kind} cannot be made (${status}): ${text}`)
  })
}

let numbers = 0

type Drive = Template & { readonly side: Side; readonly run: Run; readonly connections: number }

async function driveByWrk({ side: { way }, run, connections, method, path, body }: Drive): Promise<Rate> {
  const { origin, pathname } = new URL(way.server)
  const base = { url: origin, key: (await way.bearer()) ?? '', method, path: pathname.replace(/\/$/, '') + path }
  const { seconds, objects: among, signal } = run
  const type = typeOf(method)
  const load = { ...base, type, connections, seconds, among, signal, ...(body ? { body: JSON.stringify(body) } : {}) }
  const { perSecond, requests, errors } = await drive(load)
  return {
    perSecond: Math.max(0, perSecond - errors / seconds),
    count: Math.max(0, requests - errors),
    errors,
    why: errors ? 'as wrk counts them' : undefined,
  }
}

async function driveRequests({ side, run, connections, method, path, body }: Drive): Promise<Rate> {
  let [good, errors] = [0, 0]
  let why: string | undefined
  const text = body && JSON.stringify(body)
  const start = performance.now()
  const end = start + run.seconds * 1000
  const lane = async () => {
    // Waits for pending requests, also when the run is aborted: nothing may be created after the cleanup.
    while (performance.now() < end && !run.signal.aborted) {
      const number = numbers++
      const at = path.replaceAll('%d', `${number % run.objects}`)
      const problem = await side.way.send(method, at, text?.replaceAll('%d', `${number}`)).then(
        ({ status }) => (status < 300 ? undefined : `${status}`),
        (error: Error) => error.message,
      )
      if (problem === undefined) good++
      else errors++
      why ??= problem
    }
  }
  await Promise.all(Array.from({ length: connections }, lane))
  return { perSecond: good / ((performance.now() - start) / 1000), count: good, errors, why }
}

/** Watchers and writers share this process: it delays both servers alike. */
async function driveWatch({ way, stock }: Side, { run, watchers, events, signal }: Run): Promise<Rate> {
  const prefix = `${run}-watched-${numbers++}-`
  const arrived: { readonly name: string; readonly time: number }[] = []
  let expected = watchers * events
  let seen = () => {}
  const all = new Promise<void>(resolve => {
    seen = resolve
  })
  const { text } = await way.send('GET', `${stock.collection}?limit=1`)
  const path = `${stock.collection}?watch=1&resourceVersion=${JSON.parse(text).metadata.resourceVersion}`
  const open = () => {
    let rest = ''
    return way.watch(path, chunk => {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() as string
      for (const line of lines) {
        const at = line.indexOf(`"name":"${prefix}`)
        if (at !== -1) arrived.push({ name: line.slice(at + 8, line.indexOf('"', at + 8)), time: performance.now() })
      }
      if (arrived.length >= expected) seen()
    })
  }
  const ends = await Promise.all(Array.from({ length: watchers }, open))
  const answered = new Map<string, number>()
  const start = performance.now()
  await lanes(32, events, signal, async index => {
    const name = `${prefix}${index}`
    const { status } = await way.send('POST', stock.collection, JSON.stringify(stock.object(name, { [label]: run })))
    if (status === 201) answered.set(name, performance.now())
  })
  // Rejected writes cause no events.
  expected = watchers * answered.size
  if (arrived.length < expected) await within(60_000, all, signal)
  for (const end of ends) end()
  const missing = watchers * events - arrived.length
  const delays = arrived.map(({ name, time }) => Math.max(0, time - (answered.get(name) ?? time)))
  const took = (arrived.at(-1)?.time ?? Number.POSITIVE_INFINITY) - start
  const p99 = delays.toSorted((a, b) => a - b)[Math.floor(delays.length * 0.99)] ?? 0
  const why = missing ? `${missing} events did not arrive` : undefined
  return { perSecond: arrived.length / (took / 1000), count: arrived.length, errors: missing, why, p99 }
}

/** Stops waiting, not the run: missing events are counted. */
async function within(milliseconds: number, wait: Promise<void>, signal: AbortSignal): Promise<void> {
  const over = AbortSignal.any([AbortSignal.timeout(milliseconds), signal])
  if (over.aborted) return
  await Promise.race([wait, new Promise(resolve => over.addEventListener('abort', resolve, { once: true }))])
}

/** If one fails, no other continues, and all have ended when it returns: nothing is created afterwards. */
async function lanes(count: number, total: number, signal: AbortSignal, work: (index: number) => Promise<void>) {
  let next = 0
  let failed: unknown
  const lane = async () => {
    while (next < total && !signal.aborted && failed === undefined)
      await work(next++).catch(error => {
        failed ??= error
      })
  }
  await Promise.all(Array.from({ length: count }, lane))
  if (failed !== undefined) throw failed
}

const medianOf = (rates: readonly Rate[], pick: (rate: Rate) => number) => median(rates.map(pick))

/** The median of several rounds, with the errors of all rounds. */
export const middle = (rates: readonly Rate[]): Rate => ({
  perSecond: medianOf(rates, rate => rate.perSecond),
  count: medianOf(rates, rate => rate.count),
  ...(rates.every(({ cpu }) => cpu === undefined) ? {} : { cpu: medianOf(rates, rate => rate.cpu ?? 0) }),
  errors: rates.reduce((sum, { errors }) => sum + errors, 0),
  why: rates.find(({ why }) => why)?.why,
  ...(rates[0]?.p99 === undefined ? {} : { p99: medianOf(rates, rate => rate.p99 ?? 0) }),
})
