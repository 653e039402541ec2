// The cost prover: what one request of a signed-in user costs the main thread grows with its size and stays within bounds,
// for every kind, every way to write it, and every field that can be stretched.

import { stringify } from 'yaml'
import type { Kind } from '../../../src/api/kind.ts'
import type { JsonObject } from '../../../src/api/object.ts'
import { pathOf } from '../../../src/api/paths.ts'
import { kinds } from '../../../src/kinds/index.ts'
import { type Cost, measure } from './meter.ts'
import { type Stretch, stretches } from './stretch.ts'
import { openSystem, type System } from './system.ts'

/** Milliseconds of CPU time. */
export const longestStretch = 50
export const mostGrowth = 2.5
/** Below this, what is measured is mostly the rest of the request. */
const small = 8
const tries = 3

export type Finding = { readonly what: string; readonly problem: string }
export type Proof = {
  readonly measured: number
  readonly slowest: { readonly what: string; readonly longest: number }
  readonly findings: readonly Finding[]
}

type Way = {
  readonly name: string
  request(kind: Kind, object: JsonObject): { url: string; method: string; type: string; body: string } | undefined
}

const named = (kind: Kind, object: JsonObject, name: string): JsonObject => ({
  apiVersion: kind.apiVersion,
  kind: kind.kind,
  ...object,
  metadata: { ...(object['metadata'] as JsonObject | undefined), name },
})
const collection = (kind: Kind) =>
  `/kubernetes/management${pathOf(kind, { namespace: kind.namespaced ? spaceOf(kind) : '' })}`
const spaceOf = (kind: Kind) => (kind.sample['metadata'] as { namespace?: string } | undefined)?.namespace ?? 'default'
const isBuiltIn = (kind: Kind) => kind.group.endsWith('.k8s.io')

/** The object that patches are sent to. */
const target = 'cost-target'

const ways: readonly Way[] = [
  {
    name: 'create by JSON',
    request: (kind, object) => ({
      method: 'POST',
      url: `${collection(kind)}?dryRun=All`,
      type: 'application/json',
      body: JSON.stringify(named(kind, object, 'cost-new')),
    }),
  },
  {
    name: 'create by YAML',
    request: (kind, object) => ({
      method: 'POST',
      url: `${collection(kind)}?dryRun=All`,
      type: 'application/yaml',
      body: stringify(named(kind, object, 'cost-new'), { lineWidth: 0 }),
    }),
  },
  patchWay('merge patch', 'application/merge-patch+json', (kind, object) =>
    JSON.stringify(named(kind, object, target)),
  ),
  patchWay('JSON Patch', 'application/json-patch+json', (_, object) =>
    JSON.stringify(
      Object.entries(object).flatMap(([path, value]) =>
        path === 'metadata' ? [] : [{ op: 'add', path: `/${path}`, value }],
      ),
    ),
  ),
  patchWay(
    'apply',
    'application/apply-patch+yaml',
    (kind, object) => JSON.stringify(named(kind, object, target)),
    'fieldManager=cost&force=true&',
  ),
  patchWay(
    'strategic merge',
    'application/strategic-merge-patch+json',
    (kind, object) => JSON.stringify(named(kind, object, target)),
    '',
    isBuiltIn,
  ),
]

function patchWay(
  name: string,
  type: string,
  body: (kind: Kind, object: JsonObject) => string,
  query = '',
  suits: (kind: Kind) => boolean = () => true,
): Way {
  return {
    name,
    request: (kind, object) =>
      kind.stored && kind.verbs.includes('patch') && suits(kind)
        ? { method: 'PATCH', url: `${collection(kind)}/${target}?${query}dryRun=All`, type, body: body(kind, object) }
        : undefined,
  }
}

/** `chosen`: which of all stretched fields and ways to measure. */
export async function proveCost(chosen: (what: string) => boolean = () => true): Promise<Proof> {
  const system = await openSystem()
  const findings: Finding[] = []
  let measured = 0
  let slowest = { what: '', longest: 0 }
  try {
    for (const kind of kinds.filter(one => one.served && one.verbs.includes('create'))) {
      if (kind.stored)
        await ask(system, {
          method: 'POST',
          url: collection(kind),
          type: 'application/json',
          body: JSON.stringify(named(kind, kind.sample, target)),
        })
      for (const stretch of stretches(kind))
        for (const way of ways) {
          const what = `${kind.kind} ${stretch.path} by ${way.name}`
          if (!chosen(what) || !way.request(kind, {})) continue
          const { problem, longest } = await judge(system, kind, stretch, way)
          measured++
          if (longest > slowest.longest) slowest = { what, longest }
          if (problem) findings.push({ what, problem })
        }
    }
  } finally {
    await system.close()
  }
  return { measured, slowest, findings }
}

/** At half of what is allowed, at all of it, and at twice as much, which is refused. */
async function judge(system: System, kind: Kind, { most, make }: Stretch, way: Way) {
  const at = async (count: number) => {
    const request = way.request(kind, make(count))
    return request ? best(system, request) : { total: 0, longest: 0 }
  }
  const [half, whole, double] = [await at(Math.floor(most / 2)), await at(most), await at(most * 2)]
  const longest = Math.max(half.longest, whole.longest, double.longest)
  const growth = whole.total / Math.max(half.total, small)
  const problem =
    longest > longestStretch
      ? `${longest.toFixed(0)} ms without a break`
      : growth > mostGrowth
        ? `${half.total.toFixed(0)} ms for half, ${whole.total.toFixed(0)} ms for the whole`
        : undefined
  return { problem, longest }
}

type Asked = { readonly method: string; readonly url: string; readonly type: string; readonly body: string }

const ask = (system: System, { method, url, type, body }: Asked) =>
  system.ask({ method, url, headers: { authorization: `Bearer ${system.adminKey}`, 'content-type': type }, body })

/** The best of a few: other work of the machine, and the collection of garbage, are not the request's. */
async function best(system: System, request: Asked): Promise<Cost> {
  const found: Cost[] = []
  for (let index = 0; index < tries; index++) found.push(await measure(() => ask(system, request)))
  return {
    total: Math.min(...found.map(one => one.total)),
    longest: Math.min(...found.map(one => one.longest)),
  }
}
