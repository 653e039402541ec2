// One of the two servers that compare.ts compares: its requests, its test objects, and their cleanup.

import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openDial } from '../src/transport/dial.ts'
import { readKubeconfig } from '../src/transport/kubeconfig.ts'
import type { Call } from '../src/transport/upstream.ts'

export type Answer = { readonly status: number; readonly text: string }
export type Way = {
  readonly server: string
  /** A token for wrk; absent if the certificate of the server must be verified, because wrk does not verify. */
  bearer(): Promise<string | undefined>
  /** Rejects without a response. */
  send(method: string, path: string, body?: string): Promise<Answer>
  /** Resolves when the watch is open, with a function that ends it. */
  watch(path: string, take: (chunk: string) => void): Promise<() => void>
}

/** The test objects of a server: their kind, location, and the changing field. */
export type Stock = {
  readonly kind: 'ConfigMap' | 'Team'
  readonly collection: string
  object(name: string, labels: { readonly [name: string]: string }): object
  patch(value: string): object
}

export const typeOf = (method: string) => (method === 'PATCH' ? 'application/merge-patch+json' : 'application/json')

const answerWithin = 30_000
const goneWithin = 60_000

type Asked = {
  readonly method: string
  readonly path: string
  readonly body?: string | undefined
  readonly take: (chunk: Buffer) => void
  readonly end?: () => void
  readonly failed?: (error: Error) => void
}

/** With a token or client certificate from the kubeconfig. */
export function openWay(file: string, context?: string): Way {
  const access = readKubeconfig(readFileSync(file), { file, directory: dirname(resolve(file)), context })
  const dial = openDial(access, { env: process.env, now: Date.now })
  const { host, pathname } = new URL(access.server)
  /** Resolves with the status once the response has begun. */
  const open = async (asked: Asked): Promise<{ readonly status: number; readonly call: Call }> => {
    const { method, path, body, take, end, failed } = asked
    const { upstream, authorization } = await dial.now()
    const headers = [
      ...['Host', host],
      ...(authorization ? ['Authorization', authorization] : []),
      ...(body ? ['Content-Type', typeOf(method)] : []),
    ]
    return new Promise((resolve, reject) => {
      const fail = (why: string, cause?: Error) => {
        clearTimeout(timer)
        const error = new Error(`${access.server}: ${why}`, { cause })
        reject(error)
        failed?.(error)
      }
      const timer = setTimeout(() => {
        call.drop()
        fail(`no answer within ${answerWithin / 1000} s`)
      }, answerWithin)
      const call: Call = upstream.send(
        { method, path: `${pathname.replace(/\/$/, '')}${path}`, headers, body, connectWithin: answerWithin },
        {
          head({ status }) {
            clearTimeout(timer)
            resolve({ status, call })
          },
          data: take,
          end: () => end?.(),
          failed: error => fail(dial.why(error), error),
        },
      )
    })
  }
  return {
    server: access.server,
    async bearer() {
      const isNear = ['127.0.0.1', '[::1]', 'localhost'].includes(new URL(access.server).hostname)
      const [, token] = /^Bearer (\S+)$/.exec((await dial.now()).authorization ?? '') ?? []
      return isNear && !access.certificate ? token : undefined
    },
    async send(method, path, body) {
      const chunks: Buffer[] = []
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const take = (chunk: Buffer) => void chunks.push(chunk)
      const [{ status }] = await Promise.all([
        open({ method, path, body, take, end: resolve, failed: reject }),
        promise,
      ])
      return { status, text: Buffer.concat(chunks).toString() }
    },
    async watch(path, take) {
      const { status, call } = await open({ method: 'GET', path, take: chunk => take(chunk.toString('latin1')) })
      if (status !== 200) throw new Error(`${access.server}: a watch was answered ${status}`)
      return call.drop.bind(call)
    },
  }
}

const padding = 'x'.repeat(500)
const teams = '/apis/management.platform.sh/v1'

const configMaps = (namespace: string): Stock => ({
  kind: 'ConfigMap',
  collection: `/api/v1/namespaces/${namespace}/configmaps`,
  object: (name, labels) => ({ metadata: { name, labels }, data: { description: padding } }),
  patch: value => ({ data: { displayName: value } }),
})
export const teamStock: Stock = {
  kind: 'Team',
  collection: `${teams}/teams`,
  object: (name, labels) => ({ metadata: { name, labels }, spec: { description: padding } }),
  patch: value => ({ spec: { displayName: value } }),
}

/** ConfigMaps in a namespace of that name if the server has them, otherwise Teams of a server like ours. */
export async function chooseStock(way: Way, namespace: string): Promise<Stock> {
  if (await serves(way, '/api/v1', 'configmaps')) return configMaps(namespace)
  if (await serves(way, teams, 'teams')) return teamStock
  throw new Error(
    `${way.server} has neither ConfigMaps (v1) nor Teams (management.platform.sh/v1), or does not show them`,
  )
}

async function serves(way: Way, path: string, plural: string): Promise<boolean> {
  const { status, text } = await way.send('GET', path)
  if (status === 401) throw new Error(`${way.server} does not know who asks (401): look at the user in the kubeconfig`)
  if (status !== 200) return false
  const { resources = [] } = JSON.parse(text) as { readonly resources?: readonly { readonly name: string }[] }
  return resources.some(({ name }) => name === plural)
}

/** Resolves with whether it was created. Servers with implicit namespaces create none. */
export async function makeNamespace(way: Way, name: string): Promise<boolean> {
  const { status, text } = await way.send('POST', '/api/v1/namespaces', JSON.stringify({ metadata: { name } }))
  if (status === 405) return false
  if (status !== 201) throw new Error(`${way.server}: the namespace ${name} cannot be made (${status}): ${text}`)
  return true
}

/** Repeats until nothing is left, and checks once more, because late requests may create objects. */
export async function removeAll(way: Way, { collection }: Stock, selector: string): Promise<void> {
  let isGone = false
  const those = `${collection}?labelSelector=${encodeURIComponent(selector)}`
  await until(`${way.server}: not everything could be removed: delete what has the label ${selector}`, async () => {
    await way.send('DELETE', those)
    const { status, text } = await way.send('GET', `${those}&limit=1`)
    const before = isGone
    isGone = status === 200 && !JSON.parse(text).items?.length
    return before && isGone
  })
}

export async function removeNamespace(way: Way, name: string): Promise<void> {
  const path = `/api/v1/namespaces/${name}`
  await way.send('DELETE', path)
  const problem = `${way.server}: the namespace ${name} is empty and marked for deletion, but not gone after ${goneWithin / 1000} s: does its controller manager run?`
  await until(problem, async () => (await way.send('GET', path)).status === 404)
}

async function until(problem: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + goneWithin; !(await isSo()); await pause(300))
    if (Date.now() > end) throw new Error(problem)
}
