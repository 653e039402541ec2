// Polls /livez fifty times a second from a separate thread, so that the load of the main thread does not affect it. load-steady.ts starts it.

import { setTimeout as pause } from 'node:timers/promises'
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { type LeanOptions, openLeanClient } from './lean-client.ts'

if (!isMainThread && parentPort) {
  const client = openLeanClient(workerData as LeanOptions)
  const took: number[] = []
  let isOver = false
  parentPort.once('message', () => {
    isOver = true
  })
  await client.ask('GET', '/livez')
  parentPort.postMessage('ready')
  while (!isOver) {
    const started = performance.now()
    await client.ask('GET', '/livez')
    took.push(performance.now() - started)
    await pause(20)
  }
  client.close()
  parentPort.postMessage(took)
  parentPort.close()
}
