// Validates the type of every field of Endpoints and EndpointSlices, because a patch may return anything.

import { isObject, type JsonObject } from '../../api/object.ts'

type Check = (value: unknown, at: string) => string | undefined

const is =
  (type: string): Check =>
  (value, at) =>
    typeof value === type ? undefined : `${at} is ${nameOf(value)}, must be a ${type}`
const each =
  (check: Check): Check =>
  (value, at) => {
    if (!Array.isArray(value)) return `${at} is ${nameOf(value)}, must be a list`
    return first(value.map((item, index) => [check, item, `${at}[${index}]`]))
  }
const map =
  (check: Check): Check =>
  (value, at) => {
    if (!isObject(value)) return `${at} is ${nameOf(value)}, must be a map`
    return first(Object.entries(value).map(([key, item]) => [check, item, `${at}[${JSON.stringify(key)}]`]))
  }
const fields =
  (checks: { readonly [key: string]: Check }, needs: readonly string[] = []): Check =>
  (value, at) => {
    if (!isObject(value)) return `${at || 'the object'} is ${nameOf(value)}, must be a map`
    const missing = needs.find(key => value[key] === undefined)
    if (missing !== undefined) return `${at}.${missing} is missing`
    return first(
      Object.entries(checks)
        .filter(([key]) => value[key] !== undefined)
        .map(([key, check]) => [check, value[key], at ? `${at}.${key}` : key]),
    )
  }

function first(checks: readonly (readonly [Check, unknown, string])[]): string | undefined {
  for (const [check, value, at] of checks) {
    const problem = check(value, at)
    if (problem !== undefined) return problem
  }
  return undefined
}

const nameOf = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`)

const text = is('string')
const address = fields({ ip: text, hostname: text, nodeName: text, targetRef: map(text) }, ['ip'])
const port = fields({ name: text, port: is('number'), protocol: text, appProtocol: text }, ['port'])
const metadata = fields({ labels: map(text), annotations: map(text) })
const checkEndpoints = fields({
  metadata,
  subsets: each(fields({ addresses: each(address), notReadyAddresses: each(address), ports: each(port) })),
})
const names = each(fields({ name: text }))
const endpoint = fields(
  {
    addresses: each(text),
    conditions: map(is('boolean')),
    hostname: text,
    nodeName: text,
    zone: text,
    hints: fields({ forZones: names, forNodes: names }),
    deprecatedTopology: map(text),
    targetRef: map(text),
  },
  ['addresses'],
)
const slicePort = fields({ name: text, port: is('number'), protocol: text, appProtocol: text })
const checkSlice = fields({ metadata, addressType: text, endpoints: each(endpoint), ports: each(slicePort) }, [
  'addressType',
])

/** Returns undefined if the object is valid. */
export const objectProblem = (object: JsonObject): string | undefined =>
  (object['kind'] === 'EndpointSlice' ? checkSlice : checkEndpoints)(object, '')
