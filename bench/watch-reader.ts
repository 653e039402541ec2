// Holds many watches and records when each event arrives, in a separate process, so that reading delays nothing else. watch.ts starts it.

import { connect } from 'node:tls'

export type Task = {
  readonly url: string
  readonly key: string
  readonly watchers: number
  /** The number of warm-up events: `warm` is reported when all have been read. */
  readonly warmUp: number
  readonly events: number
}
/** The time at which each watcher received an event, in milliseconds of a clock that all processes share. */
export type Report = { readonly [name: string]: readonly number[] }

const now = () => Number(process.hrtime.bigint()) / 1e6
const arrivals: { [name: string]: number[] } = {}
let expected = Number.POSITIVE_INFINITY
let toWarmUp = 0

process.on('message', (task: Task) => void start(task))

async function start(task: Task): Promise<void> {
  expected = task.watchers * task.events
  toWarmUp = task.watchers * task.warmUp
  await Promise.all(Array.from({ length: task.watchers }, () => open(task)))
  process.send?.('open')
}

/** Reads the connection directly, because the CPU time of the reader is not available to the server. */
function open({ url, key }: Task): Promise<void> {
  const { host, hostname, port, pathname, search } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
    let rest = ''
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => {
      rest = note(rest + chunk)
      resolve()
    })
    socket.on('error', reject)
    socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\n\r\n`)
  })
}

/** Records every complete event, and returns the rest. Ignores everything else, such as headers and chunk lengths. */
function note(text: string): string {
  const time = now()
  let at = 0
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', at)) {
    if (text.charCodeAt(at) === brace) take(text, at, time)
    at = end + 1
  }
  return text.slice(at)
}

const brace = 0x7b

function take(text: string, at: number, time: number): void {
  const start = text.indexOf('"name":"', at) + 8
  const name = text.slice(start, text.indexOf('"', start))
  if (!name.startsWith('bench-')) {
    if (--toWarmUp === 0) process.send?.('warm')
    return
  }
  arrivals[name] ??= []
  arrivals[name].push(time)
  if (--expected === 0) process.send?.(arrivals, () => process.exit(0))
}
