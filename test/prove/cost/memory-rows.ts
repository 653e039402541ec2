// Large requests leave little behind in memory. rows.ts lists these rows.

import type { Kind } from '../../../src/api/kind.ts'
import type { JsonObject } from '../../../src/api/object.ts'
import { kinds } from '../../../src/kinds/index.ts'
import { keptBy } from '../../support/heap.ts'
import { ask, type Input } from './limits.ts'
import type { Row } from './rows.ts'
import type { System } from './system.ts'
import { many } from './users.ts'
import { collection, type Way, ways } from './write-requests.ts'

/** Characters of a body, and bodies for each kind. One kind whose bodies stay in memory exceeds the limit. */
const [bodySize, bodies] = [500_000, 16]
/** Characters of a URL or header, and requests for each kind. */
const [headSize, heads] = [60_000, 100]
/** Bytes that all requests of a row may keep: the objects that they write, and what caches hold. */
const most = 6_000_000

const written = kinds.filter(one => one.served && one.verbs.includes('create'))
const listed = kinds.filter(one => one.served && one.verbs.includes('list'))

export const memoryRows: { readonly [what: string]: Row } = {
  'memory kept after small objects in large bodies': system => inEveryWay(way => writeSmall(system, way)),
  'memory kept after large bodies that are refused': system => inEveryWay(way => writeInvalid(system, way)),
  'memory kept after long URLs': system => keptAfter(() => sendLongUrls(system)),
  'memory kept after long headers': system => keptAfter(() => sendLongHeaders(system)),
}

async function inEveryWay(run: (way: Way) => Promise<string | undefined>): Promise<string | undefined> {
  const problems: string[] = []
  for (const way of ways) {
    const problem = await run(way)
    if (problem) problems.push(`${way.name}: ${problem}`)
  }
  return problems.length ? problems.join('; ') : undefined
}

async function keptAfter(send: () => Promise<void>): Promise<string | undefined> {
  const bytes = await keptBy(send)
  return bytes > most ? `${Math.round(bytes / 1e6)} MB` : undefined
}

/** Small objects of every kind, in bodies that are filled with spaces, comments or unknown fields. */
async function writeSmall(system: System, way: Way): Promise<string | undefined> {
  const suitable = written.filter(kind => way.request(kind, kind.sample))
  const write = async (kind: Kind, at: number) => {
    const name = `a-name-that-is-kept-${way.name.toLowerCase().replaceAll(' ', '-')}-${at}`
    const object = withMetadata(kind.sample, { labels: { 'example.com/a-label-that-is-kept': `of-${name}` } })
    const isCreate = way.request(kind, kind.sample)?.method === 'POST'
    const version = isCreate ? {} : await create(system, kind, name)
    const input = way.request(kind, withMetadata(object, version), name) as Input
    return (await ask(system, { ...input, body: filled(input) })).code < 300
  }
  for (const kind of suitable) await write(kind, bodies)
  let accepted = 0
  const problem = await keptAfter(async () => {
    for (const kind of suitable) for (let at = 0; at < bodies; at++) if (await write(kind, at)) accepted++
  })
  // Nothing is stored of a request that is refused.
  const enough = (suitable.length * bodies) / 2
  return problem ?? (accepted < enough ? `only ${accepted} of ${enough * 2} requests were accepted` : undefined)
}

/** Returns the version, which a replacement must name. */
async function create(system: System, kind: Kind, name: string): Promise<JsonObject> {
  const input = ways[0]?.request(kind, kind.sample, name)
  const { text } = await ask(system, input as Input)
  const { resourceVersion = '' } = (JSON.parse(text) as { metadata: { resourceVersion?: string } }).metadata
  return { resourceVersion }
}

function filled({ body, type }: Input): string | Uint8Array {
  if (typeof body !== 'string') return Buffer.concat([body, unknownField()])
  const isYaml = type === 'application/yaml'
  return isYaml ? `${body}\n#${'x'.repeat(bodySize - body.length - 2)}` : body + ' '.repeat(bodySize - body.length)
}

/** Field 15 of a protobuf message, of bytes. */
function unknownField(): Buffer {
  const length = [(bodySize % 128) | 128, ((bodySize >> 7) % 128) | 128, bodySize >> 14]
  return Buffer.concat([Buffer.from([15 * 8 + 2, ...length]), Buffer.alloc(bodySize)])
}

/** Texts of any length where the server may keep one: in names, keys, and values of the wrong type. */
const intruders: readonly ((object: JsonObject, text: string) => JsonObject)[] = [
  (object, text) => withMetadata(object, { namespace: text }),
  (object, text) => withMetadata(object, { labels: { [text]: 'x' } }),
  (object, text) => withMetadata(object, { labels: { key: text } }),
  (object, text) => withMetadata(object, { creationTimestamp: text }),
  (object, text) => withMetadata(object, { ownerReferences: [{ uid: text }] }),
  (object, text) => ({ ...object, kind: text }),
  (object, text) => ({ ...object, apiVersion: text }),
  (object, text) => ({ ...object, spec: text }),
  (object, text) => ({ ...object, [text]: text }),
]

const withMetadata = (object: JsonObject, more: JsonObject): JsonObject => ({
  ...object,
  metadata: { ...(object['metadata'] as JsonObject | undefined), ...more },
})

async function writeInvalid(system: System, way: Way): Promise<string | undefined> {
  let sent = 0
  const send = async () => {
    for (const kind of written) {
      const text = () => `${sent++}-${'x'.repeat(bodySize / 2)}`
      const inputs = [
        way.request(kind, kind.sample, `${text()}/`),
        ...intruders.map(intrude => way.request(kind, intrude(kind.sample, text()))),
      ]
      for (const input of inputs) if (input) await ask(system, input)
    }
  }
  await send()
  return keptAfter(send)
}

async function sendLongUrls(system: System): Promise<void> {
  for (const kind of listed)
    for (let at = 0; at < heads; at++) {
      const headers = { authorization: `Bearer ${at < heads / 2 ? 'none' : system.adminKey}` }
      const text = `${at}-${'x'.repeat(headSize)}`
      const word = `a-word-of-a-selector-${at}`
      const url = collection(kind)
      const urls = [
        `${url}/${text}`,
        `${url}/${word}?${text}`,
        `${url}?fieldSelector=metadata.name=${word}&${text}`,
        `${url}?labelSelector=${word}&${text}`,
        `${url}?labelSelector=a+in+(${many(3000, index => `${word}-${index}`).join(',')})`,
        `${url}?continue=${text}`,
        `${url}?limit=1&resourceVersion=${text}`,
        `/${text}`,
      ]
      await system.ask({ method: 'GET', url: urls[at % urls.length] as string, headers })
      if (kind.verbs.includes('watch')) {
        const watch = system.watch({ method: 'GET', url: `${urls[2 + (at % 2)]}&watch=1`, headers })
        await new Promise(setImmediate)
        await watch.close()
      }
    }
}

const headerNames = [
  'user-agent',
  'accept',
  'content-type',
  'authorization',
  'cookie',
  'impersonate-user',
  'impersonate-group',
  'impersonate-extra-key',
  'traceparent',
  'x-request-id',
  'x-forwarded-for',
]

async function sendLongHeaders(system: System): Promise<void> {
  for (const kind of listed)
    for (let at = 0; at < heads; at++) {
      const name = headerNames[at % headerNames.length] as string
      const headers = { authorization: `Bearer ${system.adminKey}`, [name]: `${at}-${'x'.repeat(headSize)}` }
      await system.ask({ method: 'GET', url: `${collection(kind)}?limit=1`, headers })
    }
}
