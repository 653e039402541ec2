// Reverse patches: a reverse expression runs only for labels and annotations that the host changed, and never twice.

import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, test } from 'node:test'
import fc from 'fast-check'
import type { Resource } from '../../src/api/object.ts'
import { loadConfig } from '../../src/vcluster/config/config.ts'
import { openPatcher } from '../../src/vcluster/patch/apply.ts'
import type { Patch } from '../../src/vcluster/patch/patch.ts'
import { openSandbox } from '../../src/vcluster/patch/sandbox.ts'
import { endpointsKind } from '../../src/vcluster/sync/endpoints-kind.ts'
import type { EndpointsObject } from '../../src/vcluster/sync/kinds.ts'
import { hostName } from '../../src/vcluster/sync/names.ts'
import { type PlanTools, planObject } from '../../src/vcluster/sync/plan.ts'
import type { Syncer } from '../../src/vcluster/sync/sync.ts'
import { openSync } from '../../src/vcluster/sync/sync.ts'
import { type Cluster, endpoints, openCluster, people, until } from '../support/cluster.ts'

const sandbox = openSandbox({ workers: 1 })
after(() => sandbox.close())

const at = { namespace: 'default', name: 'web' }
const vcluster = { name: 'vc', namespace: 'team' }

/** Both clusters as the planner sees them. */
function openWorld(patches: readonly Patch[], virtual: EndpointsObject) {
  const patcher = openPatcher({ patches, vcluster: { ...vcluster, config: {} }, sandbox })
  const tools: PlanTools = {
    vcluster,
    synced: endpointsKind,
    hostDeletePolicy: 'Recreate',
    owner: undefined,
    denyReason: () => undefined,
    patcher,
    now: () => 0,
  }
  const sides: { virtual: EndpointsObject; host: EndpointsObject | undefined } = { virtual, host: undefined }
  const pass = async (): Promise<number> => {
    const plan = await planObject({ ref: at, service: 'plain', ...sides }, tools)
    assert.equal(plan.syncFailure, undefined)
    let writes = 0
    for (const side of ['virtual', 'host'] as const) {
      const write = plan[side]
      if (!write) continue
      assert.notEqual(write.verb, 'delete')
      assert.notDeepEqual(write.object, sides[side], 'an update without a change')
      sides[side] = write.object
      writes++
    }
    return writes
  }
  return {
    sides,
    /** Returns after a pass without writes. */
    async settle(): Promise<void> {
      for (let passes = 0; passes < 4; passes++) if ((await pass()) === 0) return
      assert.fail('no steady state after four passes')
    },
    edit(side: 'virtual' | 'host', part: Part, key: string, value: string | undefined): void {
      const object = sides[side] as EndpointsObject
      const { [key]: _, ...rest } = object.metadata[part] ?? {}
      const changed = value === undefined ? rest : { ...rest, [key]: value }
      sides[side] = { ...object, metadata: { ...object.metadata, [part]: changed } }
    },
  }
}

type Part = 'labels' | 'annotations'
type Value = string | undefined

/** One patch, with the same functions in TypeScript as a model. */
type Pair = {
  readonly expression?: string
  readonly reverseExpression?: string
  readonly forward: (value: string) => Value
  readonly back: (value: string) => Value
  /** A value that the host may set. */
  readonly onHost: (value: string) => string
}
const same = (value: string) => value
const fail = '(() => { throw new Error("unexpected form") })()'
const pairs: readonly Pair[] = [
  {
    // Inverse and strict: throws on a value that is already translated, in both directions.
    expression: `value.endsWith("_host") ? ${fail} : value + "_host"`,
    reverseExpression: `value.endsWith("_host") ? value.slice(0, -5) : ${fail}`,
    forward: value => `${value}_host`,
    back: value => value.slice(0, -5),
    onHost: value => `${value}_host`,
  },
  {
    // Not inverse: the length counts the runs.
    expression: 'value + "F"',
    reverseExpression: 'value + "R"',
    forward: value => `${value}F`,
    back: value => `${value}R`,
    onHost: same,
  },
  { expression: '"fixed"', forward: () => 'fixed', back: same, onHost: same },
  { reverseExpression: 'value + "R"', forward: same, back: value => `${value}R`, onHost: same },
  {
    expression: 'value.startsWith("a") ? null : value',
    reverseExpression: 'value.startsWith("b") ? null : value',
    forward: value => (value.startsWith('a') ? undefined : value),
    back: value => (value.startsWith('b') ? undefined : value),
    onHost: same,
  },
]
const none: Pair = { forward: same, back: same, onHost: same }

/** Models one key by the rule of the three-way merge. */
function openKey(pair: Pair) {
  const state: { [side in 'virtual' | 'host' | 'baseVirtual' | 'baseHost']: Value } = {
    ...{ virtual: undefined, host: undefined, baseVirtual: undefined, baseHost: undefined },
  }
  const through = (run: (value: string) => Value, value: Value) => (value === undefined ? undefined : run(value))
  return {
    state,
    settle() {
      const isHostOnly = state.host !== state.baseHost && state.virtual === state.baseVirtual
      if (isHostOnly) state.virtual = through(pair.back, state.host)
      state.host = through(pair.forward, state.virtual)
      state.baseVirtual = state.virtual
      state.baseHost = state.host
    },
  }
}

const keys = ['labels/x', 'labels/y', 'annotations/a', 'annotations/b', 'annotations/example.org/c'] as const
const partOf = (id: string) => id.split('/')[0] as Part
const keyOf = (id: string) => id.slice(id.indexOf('/') + 1)
/** Would fail if it ever ran: only labels and annotations are synced back. */
const neverRun: Patch = { path: 'subsets[*].addresses[*].ip', reverseExpression: fail }

type Step =
  | { readonly edit: 'virtual' | 'host'; readonly id: (typeof keys)[number]; readonly value: Value }
  | { readonly edit: 'settle' }
const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        edit: fc.constantFrom('virtual' as const, 'host' as const),
        id: fc.constantFrom(...keys),
        value: fc.option(fc.constantFrom('a', 'b', 'ab', 'cd', ''), { nil: undefined }),
      }),
    },
    { weight: 3, arbitrary: fc.constant({ edit: 'settle' as const }) },
  ),
  { maxLength: 14 },
)

/** Runs the steps against the planner and against the model. */
async function follow(patches: readonly Patch[], pairOf: (id: string) => Pair, list: readonly Step[]): Promise<void> {
  const world = openWorld([...patches, neverRun], endpoints('web', { metadata: { ...at, uid: 'u' } }))
  const model = new Map(keys.map(id => [id, openKey(pairOf(id))]))
  const settle = async () => {
    await world.settle()
    for (const [id, key] of model) {
      key.settle()
      const found = (side: 'virtual' | 'host') => world.sides[side]?.metadata[partOf(id)]?.[keyOf(id)]
      assert.deepEqual([found('virtual'), found('host')], [key.state.virtual, key.state.host], id)
    }
  }
  await settle()
  for (const step of list) {
    if (step.edit === 'settle') await settle()
    else {
      const value = step.edit === 'host' && step.value !== undefined ? pairOf(step.id).onHost(step.value) : step.value
      world.edit(step.edit, partOf(step.id), keyOf(step.id), value)
      const state = model.get(step.id)?.state
      if (state) state[step.edit] = value
    }
  }
  await settle()
  await settle()
}

test('with a patch per key, random edits on both sides settle as the merge of each key alone', async () => {
  const chosen = fc.array(fc.constantFrom(none, ...pairs), { minLength: keys.length, maxLength: keys.length })
  await fc.assert(
    fc.asyncProperty(chosen, steps, async (list, edits) => {
      const pairOf = (id: string) => list[keys.indexOf(id as (typeof keys)[number])] as Pair
      const patches = keys.flatMap((id): Patch[] => {
        const { expression, reverseExpression } = pairOf(id)
        if (expression === undefined && reverseExpression === undefined) return []
        const path = `metadata.${partOf(id)}["${keyOf(id)}"]`
        return [{ path, ...(expression && { expression }), ...(reverseExpression && { reverseExpression }) }]
      })
      await follow(patches, pairOf, edits)
    }),
    { numRuns: 150 },
  )
})

test('a patch of all keys, of a map or of the whole object also reverses only what the host changed', async () => {
  const strict = pairs[0] as Pair
  const all = (body: string, of: string) =>
    `Object.fromEntries(Object.entries(${of} ?? {}).map(([key, value]) => [key, key.includes("platform.sh") ? value : ${body}]))`
  const whole = (body: string) =>
    `({ ...value, metadata: { ...value.metadata, annotations: ${all(body, 'value.metadata.annotations')} } })`
  const forward = strict.expression as string
  const back = strict.reverseExpression as string
  const options: readonly Patch[] = [
    { path: 'metadata.annotations[*]', expression: forward, reverseExpression: back },
    { path: 'metadata.annotations', expression: all(forward, 'value'), reverseExpression: all(back, 'value') },
    {
      path: 'metadata',
      expression: `({ ...value, annotations: ${all(forward, 'value.annotations')} })`,
      reverseExpression: `({ ...value, annotations: ${all(back, 'value.annotations')} })`,
    },
    { path: '', expression: whole(forward), reverseExpression: whole(back) },
  ]
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...options), steps, async (patch, edits) => {
      await follow([patch], id => (partOf(id) === 'annotations' ? strict : none), edits)
    }),
    { numRuns: 100 },
  )
})

test('patches of the same key are reversed in the opposite order', async () => {
  const [{ expression = '', reverseExpression = '' } = none] = pairs
  const world = openWorld(
    [
      {
        path: 'metadata.annotations.a',
        expression: '"<" + value',
        reverseExpression: 'value[0] === "<" ? value.slice(1) : value.x.y',
      },
      { path: 'metadata.annotations[*]', expression, reverseExpression },
    ],
    endpoints('web', { metadata: { ...at, uid: 'u', annotations: { a: 'one', b: 'two' } } }),
  )
  await world.settle()
  assert.equal(world.sides.host?.metadata.annotations?.['a'], '<one_host')
  world.edit('host', 'annotations', 'a', '<three_host')
  await world.settle()
  assert.deepEqual({ ...world.sides.virtual.metadata.annotations }, { a: 'three', b: 'two' })
})

test('a key that a patch adds on the host: an edit of it passes the reverse patch, and the patch writes it again', async () => {
  const added = { path: 'metadata.annotations', expression: '({ ...value, zone: "eu" })' }
  const drop = { ...added, reverseExpression: '(({ zone, ...rest }) => rest)(value)' }
  const world = openWorld([drop], endpoints('web', { metadata: { ...at, uid: 'u', annotations: { a: 'one' } } }))
  await world.settle()
  for (const value of ['us', undefined]) {
    world.edit('host', 'annotations', 'zone', value)
    await world.settle()
    assert.deepEqual({ ...world.sides.virtual.metadata.annotations }, { a: 'one' })
    assert.equal(world.sides.host?.metadata.annotations?.['zone'], 'eu')
  }
})

test('a patch of the annotations is not reversed for an edit of a label, and the other way round', async () => {
  for (const [part, other] of [
    ['annotations', 'labels'],
    ['labels', 'annotations'],
  ] as const) {
    const world = openWorld(
      [{ path: `metadata.${part}`, reverseExpression: fail }],
      endpoints('web', { metadata: { ...at, uid: 'u', labels: { a: 'one' }, annotations: { a: 'one' } } }),
    )
    await world.settle()
    world.edit('host', other, 'a', 'two')
    await world.settle()
    assert.deepEqual({ ...world.sides.virtual.metadata[other] }, { a: 'two' })
  }
})

test('a patch that renames a key: an edit of the new name is undone, and the old name keeps its value', async () => {
  const world = openWorld(
    [
      {
        path: 'metadata.annotations',
        expression: '(({ a, ...rest }) => ({ ...rest, "host-a": a }))(value)',
        reverseExpression: '(({ "host-a": a, ...rest }) => ({ ...rest, a }))(value)',
      },
    ],
    endpoints('web', { metadata: { ...at, uid: 'u', annotations: { a: 'one', b: 'two' } } }),
  )
  await world.settle()
  world.edit('host', 'annotations', 'host-a', 'other')
  world.edit('host', 'annotations', 'b', 'three')
  await world.settle()
  assert.deepEqual({ ...world.sides.virtual.metadata.annotations }, { a: 'one', b: 'three' })
  assert.equal(world.sides.host?.metadata.annotations?.['host-a'], 'one')
})

describe('a reverse patch, between two servers', { timeout: 120_000 }, () => {
  let clusters: Cluster[] = []
  let running: Syncer | undefined
  const [v, h] = [() => people(clusters[0] as Cluster), () => people(clusters[1] as Cluster)]
  const hostAt = { namespace: 'team', name: hostName('web', 'default', 'vc') }
  const start = async (patches: readonly Patch[]) => {
    const text = JSON.stringify({ sync: { toHost: { endpoints: { patches } } } })
    const { config, problems } = loadConfig(new TextEncoder().encode(text), { noPatchesReason: undefined })
    assert.deepEqual(problems, [])
    running = await openSync({
      config,
      ...vcluster,
      ...{ virtual: (clusters[0] as Cluster).resources, host: (clusters[1] as Cluster).resources },
      discoverHost: async () => ({ addresses: [], owner: undefined }),
      ...{ importAllow: [], reportToTenant: true, instance: 'test', now: Date.now, random: () => 0 },
      ticks: () => performance.now(),
      wait: () => new Promise(setImmediate),
      observer: {
        ...{ wrote: () => {}, lag: () => {}, failed: () => {}, syncFailure: () => {}, patched: () => {} },
        orphaned: () => {},
      },
    })
  }
  const noteOf = (object: Resource | undefined, key: string) => object?.metadata.annotations?.[key]
  beforeEach(async () => {
    clusters = await Promise.all([openCluster(), openCluster()])
  })
  afterEach(async () => {
    await running?.stop()
    await Promise.all(clusters.map(cluster => cluster.close()))
  })

  test('does not run for an edit of another key, and runs once for an edit of its own, also after a restart', async () => {
    const [{ expression = '', reverseExpression = '' } = none] = pairs
    const patches = [{ path: 'metadata.annotations.tier', expression, reverseExpression }, neverRun]
    await v().service('web')
    await v().create(endpoints('web', { metadata: { annotations: { tier: 'gold' } } }))
    await start(patches)
    await until('the object', async () => noteOf(await h().get(hostAt), 'tier') === 'gold_host')
    await h().patch(hostAt, { metadata: { annotations: { other: 'one' } } })
    const virtual = await until('the other key', async () => {
      const found = await v().get(at)
      return noteOf(found, 'other') === 'one' && found
    })
    await running?.settled()
    assert.deepEqual(running?.failures(), [])
    assert.deepEqual(virtual?.metadata.annotations, { tier: 'gold', other: 'one' })
    await running?.stop()
    await h().patch(hostAt, { metadata: { annotations: { tier: 'silver_host', other: 'two' } } })
    await start(patches)
    await until('both edits', async () => noteOf(await v().get(at), 'tier') === 'silver')
    await running?.settled()
    const last = [await v().get(at), await h().get(hostAt)]
    assert.deepEqual(
      last.map(one => noteOf(one, 'tier')),
      ['silver', 'silver_host'],
    )
    assert.deepEqual(
      last.map(one => noteOf(one, 'other')),
      ['two', 'two'],
    )
    assert.deepEqual(running?.failures(), [])
  })
})
