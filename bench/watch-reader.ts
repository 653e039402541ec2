// Holds many watches and notes when each event arrives: a process of its own, so that reading delays nobody but itself. watch.ts starts it.

import { request } from 'node:https'

export type Task = {
  readonly url: string
  readonly key: string
  readonly watchers: number
  readonly events: number
}
/** For every event, when each watcher had it, in milliseconds of the clock that all processes of a machine share. */
export type Report = { readonly [name: string]: readonly number[] }

const now = () => Number(process.hrtime.bigint()) / 1e6
const arrivals: { [name: string]: number[] } = {}
let expected = Number.POSITIVE_INFINITY

process.on('message', (task: Task) => void start(task))

async function start(task: Task): Promise<void> {
  expected = task.watchers * task.events
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
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) note(line)
      })
      resolve()
    })
      .on('error', reject)
      .end()
  })
}

function note(line: string): void {
  const start = line.indexOf('"name":"bench-')
  if (start === -1) return
  const name = line.slice(start + 8, line.indexOf('"', start + 8))
  arrivals[name] ??= []
  arrivals[name].push(now())
  expected--
  if (expected === 0) process.send?.(arrivals, () => process.exit(0))
}
