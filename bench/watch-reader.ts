// Holds many watches and notes when each event arrives: a process of its own, so that reading delays nobody but itself. watch.ts starts it.

import { request } from 'node:https'

export type Task = {
  readonly url: string
  readonly key: string
  readonly watchers: number
  /** How many come before those that are measured: told with `warm` when all have been read. */
  readonly warmUp: number
  readonly events: number
}
/** For every event, when each watcher had it, in milliseconds of the clock that all processes of a machine share. */
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

function open({ url, key }: Task): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${key}` }
    request(url, { headers, rejectUnauthorized: false, agent: false }, response => {
      let rest = ''
      response.setEncoding('latin1')
      response.on('data', (chunk: string) => {
        rest = note(rest + chunk)
      })
      resolve()
    })
      .on('error', reject)
      .end()
  })
}

/** Notes every event that is there whole, and answers what is left. Whatever is not needed for that is not looked at. */
function note(text: string): string {
  const time = now()
  let at = 0
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', at)) {
    const start = text.indexOf('"name":"bench-', at)
    if (start !== -1 && start < end) {
      const name = text.slice(start + 8, text.indexOf('"', start + 8))
      arrivals[name] ??= []
      arrivals[name].push(time)
      expected--
    } else if (--toWarmUp === 0) process.send?.('warm')
    at = end + 1
  }
  if (expected === 0) process.send?.(arrivals, () => process.exit(0))
  return text.slice(at)
}
