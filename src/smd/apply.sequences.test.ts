// Sequences of applies and updates: the resulting owners, conflicts and objects.
// Long because of its table: the test cases of structured-merge-diff, as data.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parse } from 'yaml'
import type { Json, JsonObject, Resource } from '../api/object.ts'
import { ApplyConflict, applyConfiguration } from './apply.ts'
import { isEqual } from './compare.ts'
import { pathsOf } from './field-set.ts'
import { readFieldsV1 } from './fields-v1.ts'
import { printPath } from './path-element.ts'
import type { FieldSchema } from './schema.ts'
import { trackUpdate } from './update.ts'

const text: FieldSchema = { type: 'string' }
const number: FieldSchema = { type: 'integer' }
const setOf = (items: FieldSchema): FieldSchema => ({ type: 'array', items, 'x-kubernetes-list-type': 'set' })
const mapOf = (additionalProperties: FieldSchema): FieldSchema => ({ type: 'object', additionalProperties })
const listOf = (properties: { [name: string]: FieldSchema }): FieldSchema => ({
  type: 'array',
  items: { type: 'object', properties },
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
})
const schema: FieldSchema = {
  type: 'object',
  properties: {
    apiVersion: text,
    kind: text,
    metadata: { type: 'object', properties: { name: text, labels: mapOf(text), annotations: mapOf(text) } },
    spec: {
      type: 'object',
      properties: {
        text,
        number,
        struct: { type: 'object', properties: { name: text, value: number } },
        whole: { ...mapOf(text), 'x-kubernetes-map-type': 'atomic' },
        set: setOf(text),
        list: listOf({ name: text, value: number }),
        lists: listOf({ name: text, value: setOf(text) }),
        maps: listOf({ name: text, value: mapOf(text) }),
        setsByKey: mapOf(setOf(text)),
        mapsByKey: mapOf(mapOf(text)),
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      },
    },
  },
}

type Op = [verb: 'apply' | 'force' | 'update', manager: string, spec: Json, conflicts?: string[]]
const wrap = (spec: Json, metadata: JsonObject = {}): Resource =>
  ({ apiVersion: 'v1', kind: 'Thing', metadata: { name: 'x', ...metadata }, spec }) as unknown as Resource
const request = { schema, subresource: '', apiVersion: 'v1', now: '2026-01-02T03:04:05Z', resetStatus: false }

function perform(live: Resource | undefined, [verb, manager, spec, expected = []]: Op): Resource | undefined {
  if (verb === 'update') {
    const after = wrap(spec)
    const managedFields = trackUpdate({ ...request, manager, before: live, after })
    return { ...after, metadata: { ...after.metadata, managedFields } }
  }
  try {
    const { object } = applyConfiguration({ ...request, manager, live, config: wrap(spec), force: verb === 'force' })
    assert.deepEqual([], expected)
    return object
  } catch (error) {
    if (!(error instanceof ApplyConflict)) throw error
    assert.deepEqual(
      error.conflicts.map(conflict => `${conflict.manager} ${conflict.path}`),
      expected,
    )
    return live
  }
}

/** Paths below spec. The creator always owns spec itself. */
function ownedBy(object: Resource | undefined): string[] {
  const entries = (object?.metadata.managedFields ?? []).map(({ manager = '', fieldsV1 = {} }) => {
    const paths = pathsOf(readFieldsV1(fieldsV1)).map(path => printPath(path.slice(1)))
    return `${manager}: ${paths.sort().join(' ').trim()}`
  })
  return entries.filter(entry => !entry.endsWith(': ')).sort()
}

const plain = (value: unknown): Json => JSON.parse(JSON.stringify(value ?? null))

/** Each case: its title, the operations (`!` lists the conflicts of one), then the object and its owners. */
const CASES = `
# two applies of one applier
apply a {number: 1, text: x}
apply a {number: 2, text: x}
= {number: 2, text: x} | a: .number .text
# an update between two applies that leaves the applied alone
apply a {text: x}
update c {text: x, number: 1}
apply a {text: y}
= {text: y, number: 1} | a: .text | c: .number
# an update that took an applied field
apply a {text: x}
update c {text: y}
apply a {text: z} ! c .spec.text
= {text: y} | c: .text
# the same, forced
apply a {text: x}
update c {text: y}
force a {text: z}
= {text: z} | a: .text
# an apply that agrees with an update
apply a {text: x}
update c {text: y}
apply a {text: y}
= {text: y} | a: .text | c: .text
# an apply that drops a field
apply a {number: 1, text: x}
apply a {text: x}
= {text: x} | a: .text
# an apply that drops a field an updater took over
apply a {number: 1, text: x}
update c {number: 2, text: x}
apply a {text: x}
= {number: 2, text: x} | a: .text | c: .number
# an apply that takes from two owners
apply a {text: x}
apply b {number: 1}
apply c {text: y, number: 2} ! a .spec.text, b .spec.number
= {text: x, number: 1} | a: .text | b: .number
# an update that deletes an applied field
apply a {text: x, number: 1}
update c {text: x}
= {text: x} | a: .text
# an update of a whole map
apply a {whole: {a: x}}
update c {whole: {a: x, b: y}}
= {whole: {a: x, b: y}} | c: .whole
# a whole map that another applies differently
apply a {whole: {a: x}}
apply b {whole: {b: y}} ! a .spec.whole
= {whole: {a: x}} | a: .whole
# a longer set
apply a {set: [a, c]}
apply a {set: [a, b, c, d]}
= {set: [a, b, c, d]} | a: .set[="a"] .set[="b"] .set[="c"] .set[="d"]
# a set that an updater added to
apply a {set: [a, c]}
update c {set: [a, b, c, d]}
apply a {set: [a, x, c, y]}
= {set: [a, b, x, c, d, y]} | a: .set[="a"] .set[="c"] .set[="x"] .set[="y"] | c: .set[="b"] .set[="d"]
# a set applied in another order
apply a {set: [a, b, c, d]}
apply a {set: [a, d, c, b]}
= {set: [a, d, c, b]} | a: .set[="a"] .set[="b"] .set[="c"] .set[="d"]
# a set that an updater reordered
apply a {set: [a, b, c]}
update c {set: [c, b, a]}
apply a {set: [a, b, c]}
= {set: [a, b, c]} | a: .set[="a"] .set[="b"] .set[="c"]
# a shorter set
apply a {set: [a, b, c]}
apply a {set: [a, c]}
= {set: [a, c]} | a: .set[="a"] .set[="c"]
# a list of which another has an item
apply a {list: [{name: a}, {name: b}]}
apply b {list: [{name: c}]}
apply a {list: [{name: a}]}
= {list: [{name: a}, {name: c}]} | a: .list[name="a"] .list[name="a"].name | b: .list[name="c"] .list[name="c"].name
# an item with the same value
apply a {list: [{name: a, value: 0}]}
apply b {list: [{name: a, value: 0}]}
= {list: [{name: a, value: 0}]} | a: .list[name="a"] .list[name="a"].name .list[name="a"].value | b: .list[name="a"] .list[name="a"].name .list[name="a"].value
# an item with another value
apply a {list: [{name: a, value: 0}]}
apply b {list: [{name: a, value: 1}]} ! a .spec.list[name="a"].value
= {list: [{name: a, value: 0}]} | a: .list[name="a"] .list[name="a"].name .list[name="a"].value
# an item one drops and one keeps
apply a {list: [{name: a}, {name: b}, {name: c}]}
apply b {list: [{name: c}, {name: d}]}
apply a {list: [{name: a}]}
= {list: [{name: a}, {name: c}, {name: d}]} | a: .list[name="a"] .list[name="a"].name | b: .list[name="c"] .list[name="c"].name .list[name="d"] .list[name="d"].name
# an item that goes with its applier, whatever an updater added to it
apply a {list: [{name: a}, {name: b}]}
update c {list: [{name: a, value: 1}, {name: b}]}
apply a {list: [{name: b}]}
= {list: [{name: b}]} | a: .list[name="b"] .list[name="b"].name
# a list of sets
apply a {lists: [{name: a, value: [b, c]}]}
apply a {lists: [{name: a, value: [a, c]}]}
= {lists: [{name: a, value: [a, c]}]} | a: .lists[name="a"] .lists[name="a"].name .lists[name="a"].value[="a"] .lists[name="a"].value[="c"]
# a list of maps under another key
apply a {maps: [{name: a, value: {b: x}}]}
apply a {maps: [{name: b, value: {c: x}}]}
= {maps: [{name: b, value: {c: x}}]} | a: .maps[name="b"] .maps[name="b"].name .maps[name="b"].value.c
# a map of sets
apply a {setsByKey: {a: [b, c]}}
apply a {setsByKey: {a: [a, c]}}
= {setsByKey: {a: [a, c]}} | a: .setsByKey.a .setsByKey.a[="a"] .setsByKey.a[="c"]
# a map of maps under another key
apply a {mapsByKey: {a: {b: x}}}
apply a {mapsByKey: {b: {a: x}}}
= {mapsByKey: {b: {a: x}}} | a: .mapsByKey.b .mapsByKey.b.a
# a map of maps of two appliers
apply a {mapsByKey: {a: {x: p}}}
apply b {mapsByKey: {a: {y: p}}}
apply a {}
= {mapsByKey: {a: {y: p}}} | b: .mapsByKey.a .mapsByKey.a.y
# a struct that is dropped
apply a {struct: {name: a, value: 1}}
apply a {}
= {}
# a struct to which an updater added
apply a {struct: {name: a}}
update c {struct: {name: a, value: 1}}
apply a {}
= {struct: {value: 1}} | c: .struct.value
# a struct applied empty
apply a {struct: {name: a}}
update c {struct: {name: a, value: 1}}
apply a {struct: {}}
= {struct: {value: 1}} | a: .struct | c: .struct.value
# a struct an updater took over
apply a {struct: {name: a}}
update c {struct: {name: b, value: 1}}
apply a {}
= {struct: {name: b, value: 1}} | c: .struct.name .struct.value
# a container whose maker keeps it while its content goes
update c {struct: {name: a}}
force a {struct: {name: b}}
apply a {}
= {struct: {}} | c: .struct
# a create
update c {set: [a], struct: {name: x}}
= {set: [a], struct: {name: x}} | c: .set .set[="a"] .struct .struct.name
# an update that changes nothing
update c {text: x}
update d {text: x}
= {text: x} | c: .text
# an update that empties a set
update c {set: [a]}
update d {set: []}
= {set: []} | c: .set
# an item that was made to repeat
update c {set: [a, b]}
update d {set: [a, a, b]}
= {set: [a, a, b]} | c: .set .set[="b"] | d: .set[="a"]
# an item that no longer repeats
update c {set: [a, a, b]}
update d {set: [a, b]}
= {set: [a, b]} | c: .set .set[="b"] | d: .set[="a"]
# an item that repeats and is applied once
update c {set: [a, a, b]}
apply a {set: [a]} ! c .spec.set[="a"]
force a {set: [a]}
= {set: [a, b]} | a: .set[="a"] | c: .set .set[="b"]
# an apply beside items that repeat
update c {set: [a, a]}
apply a {set: [b]}
= {set: [a, a, b]} | a: .set[="b"] | c: .set .set[="a"]
# free fields of two appliers
apply a {free: {x: {p: 1}}}
apply b {free: {x: {q: 1}}}
apply a {free: {}}
= {free: {x: {q: 1}}} | a: .free | b: .free.x .free.x.q
# a free field that becomes another kind of value
apply a {free: {x: 1}}
apply a {free: {x: {p: 1}}}
= {free: {x: {p: 1}}} | a: .free.x .free.x.p
# keys that JavaScript knows
apply a {mapsByKey: {"__proto__": {constructor: x}}}
apply b {mapsByKey: {toString: {y: p}}}
= {mapsByKey: {"__proto__": {constructor: x}, toString: {y: p}}} | a: .mapsByKey.__proto__ .mapsByKey.__proto__.constructor | b: .mapsByKey.toString .mapsByKey.toString.y
`

describe('owners after', () => {
  for (const block of CASES.split(/^# /m).slice(1)) {
    const [title = '', ...lines] = block.trim().split('\n')
    it(title, () => {
      const [spec = '', ...owned] = lines.pop()!.slice(2).split(' | ')
      const object = lines.map(readOp).reduce<Resource | undefined>(perform, undefined)
      assert.deepEqual(plain(object?.spec ?? {}), plain(parse(spec)))
      assert.deepEqual(ownedBy(object), owned)
    })
  }
})

function readOp(line: string): Op {
  const [, verb, manager = '', spec = '', conflicts] = /^(\w+) (\w+) (.*?)(?: ! (.*))?$/.exec(line)!
  return [verb as Op[0], manager, parse(spec), conflicts?.split(', ') ?? []]
}

describe('any sequence of applies and updates', () => {
  const spec = fc.record(
    {
      text: fc.constantFrom('x', 'y'),
      struct: fc.record({ name: fc.constantFrom('x', 'y'), value: fc.nat(1) }, { requiredKeys: [] }),
      set: fc.uniqueArray(fc.constantFrom('a', 'b', 'c')),
      mapsByKey: fc.dictionary(
        fc.constantFrom('a', '__proto__'),
        fc.dictionary(fc.constantFrom('b', 'c'), fc.constantFrom('1', '2')),
      ),
      list: fc.uniqueArray(
        fc.record({ name: fc.constantFrom('a', 'b'), value: fc.nat(1) }, { requiredKeys: ['name'] }),
        { selector: item => item.name },
      ),
    },
    { requiredKeys: [] },
  ) as unknown as fc.Arbitrary<JsonObject>
  const op = fc.tuple(fc.constantFrom<'force' | 'update'>('force', 'update'), fc.constantFrom('a', 'b'), spec)

  it('keeps every applied value in the object, owned by its applier', () => {
    fc.assert(
      fc.property(fc.array(op, { maxLength: 4 }), spec, (ops, config) => {
        const live = ops.reduce<Resource | undefined>((object, each) => perform(object, each), undefined)
        const object = perform(live, ['force', 'z', config])!
        // For an object without owners, upstream records a before-first-apply entry at the next apply.
        fc.pre(object.metadata.managedFields !== undefined)
        const again = applyConfiguration({ ...request, manager: 'z', live: object, config: wrap(config), force: false })
        assert.ok(isEqual(plain(again.object), plain(object)), 'a repeated apply changes nothing')
        const gone = applyConfiguration({
          ...request,
          manager: 'z',
          live: object,
          config: wrap({}),
          force: false,
        }).object
        assert.ok(
          !gone.metadata.managedFields?.some(
            entry => entry.manager === 'z' && JSON.stringify(entry).includes('"f:text"'),
          ),
        )
      }),
      { numRuns: 2000 },
    )
  })
})
