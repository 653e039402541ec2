// Sends generated requests over bare sockets: the server responds whenever possible, never with a 500, and keeps running.

import { createConnection } from 'node:net'
import type { Server } from '../support/server.ts'
import { answerReader } from './lean-client.ts'
import { vitalsOf } from './process-health.ts'
import { brokenRequest, framedRequest } from './raw-requests.ts'
import { diceOf } from './seeded-random.ts'

export type Fuzzed = {
  readonly requests: number
  readonly answers: { readonly [code: string]: number }
  readonly problems: readonly string[]
}

const together = 64
const onOne = 20
const quiet = 150
const patience = 10_000
const mib = 2 ** 20

export async function runRawFuzz(server: Server, requests: number, seed: string): Promise<Fuzzed> {
  const vitals = await vitalsOf(server)
  const answers: { [code: string]: number } = Object.create(null)
  const problems: string[] = []
  const { hostname, port } = new URL(server.http)
  let sent = 0
  let batch = 0

  async function throwSome(): Promise<void> {
    const number = batch++
    const roll = diceOf(`${seed}/raw ${number}`)
    const isBroken = roll(2) === 0
    const count = isBroken ? 1 : onOne
    const all = Array.from({ length: count }, (_, index) =>
      isBroken ? brokenRequest(server.adminKey, roll) : framedRequest(server.adminKey, index === count - 1, roll),
    )
    sent += count
    const at = { host: hostname, port: Number(port) }
    const { codes, isEnded, end } = await exchange(at, Buffer.concat(all), isBroken ? quiet : patience)
    for (const code of codes) answers[code] = (answers[code] ?? 0) + 1
    const bad = codes.indexOf(500)
    if (bad >= 0)
      problems.push(`500 to request ${bad} of batch ${number}: ${all[bad]?.toString('latin1').slice(0, 600)}`)
    if (!isBroken && !isEnded)
      problems.push(`batch ${number}: ${codes.length} answers to ${count} requests, then ${end}`)
  }

  const lane = async () => {
    while (sent < requests && problems.length < 10) await throwSome()
  }
  await Promise.all(Array.from({ length: together }, lane))
  problems.push(...(await vitals.problems({ growth: 200 * mib })))
  return { requests: sent, answers, problems }
}

type Exchanged = {
  readonly codes: readonly number[]
  /** Whether the last response announced the close: later requests are then neither read nor answered. */
  readonly isEnded: boolean
  /** How the exchange ended, for a report. */
  readonly end: string
}

/** All responses until the peer closes, or until it is silent for the given time. */
function exchange(at: { host: string; port: number }, bytes: Buffer, quiet: number): Promise<Exchanged> {
  return new Promise(resolve => {
    const socket = createConnection(at)
    const codes: number[] = []
    let isEnded = false
    let end = 'the server closed the connection'
    const reader = answerReader(({ code, isLast }) => {
      if (code >= 200) codes.push(code)
      isEnded = isLast
    })
    socket.setTimeout(quiet, () => {
      end = `no byte in ${quiet} ms`
      socket.destroy()
    })
    socket.on('data', chunk => reader.take(chunk, undefined))
    socket.on('error', ({ message }) => {
      end = message
    })
    socket.on('close', () => resolve({ codes, isEnded, end }))
    socket.write(bytes)
  })
}
