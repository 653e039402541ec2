// JSON Patch passes the public test suite, agrees with a naive implementation, and resists hostile patches (D5).
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import test from 'node:test'
import fc from 'fast-check'
import { cpuMilliseconds } from '../../test/support/cpu-time.ts'
import { applyJsonPatch, PatchError, type PatchOptions, patchOperations, unknownMembers } from './json-patch.ts'
import { formatPointer, parsePointer } from './json-pointer.ts'
import { readJson } from './json-reader.ts'
import type { Json } from './object.ts'

const plain = (value: Json): unknown => JSON.parse(JSON.stringify(value))

function failure(document: Json, patch: Json, options?: PatchOptions): PatchError {
  try {
    applyJsonPatch(document, patch, options)
  } catch (error) {
    assert.ok(error instanceof PatchError, String(error))
    return error
  }
  return assert.fail('expected an error')
}

type SuiteCase = { comment?: string; doc: Json; patch: Json; expected?: Json; error?: string; disabled?: boolean }
const load = createRequire(import.meta.url)
const suite = ['tests.json', 'spec_tests.json'].flatMap(file => load(`json-patch-test-suite/${file}`) as SuiteCase[])

test('the public JSON Patch suite passes', () => {
  const active = suite.filter(({ disabled, doc }) => disabled !== true && doc !== undefined)
  assert.ok(active.length > 90)
  for (const { comment, doc, patch, expected, error } of active) {
    if (error !== undefined) failure(doc, patch)
    else {
      const result = applyJsonPatch(doc, patch)
      if (expected !== undefined) assert.deepEqual(plain(result), expected, comment)
    }
  }
})

test('a list index has digits only; - is valid for add only', () => {
  for (const path of ['/-1', '/01', '/00', '/1e0', '/ 1', '/+1', '/4', '/0x1', '/9999999999999']) {
    for (const op of ['add', 'replace', 'remove', 'test']) failure(['a', 'b', 'c'], [{ op, path, value: 'z' }])
  }
  for (const op of ['replace', 'remove', 'test']) failure(['a'], [{ op, path: '/-', value: 'z' }])
  assert.deepEqual(applyJsonPatch(['a'], [{ op: 'add', path: '/-', value: 'b' }]), ['a', 'b'])
  assert.deepEqual(applyJsonPatch(['a'], [{ op: 'add', path: '/1', value: 'b' }]), ['a', 'b'])
})

test('an error has the operation, the pointer and the problem, but no value', () => {
  const error = failure({ spec: {} }, [
    { op: 'test', path: '', value: { spec: {} } },
    { op: 'test', path: '/spec', value: 's3cret' },
  ])
  assert.equal(error.index, 1)
  assert.equal(error.pointer, '/spec')
  assert.equal(error.message, 'operation 1 at "/spec": the value is different')
  assert.equal(failure({}, [{ op: 'remove', path: '/a' }]).problem, 'the path does not exist')
})

test('an error below a missing parent names the parent, and the operation that adds it', () => {
  const missing = (path: string, op = 'add') =>
    failure({ spec: { x: {} } }, [{ op, path, from: '/spec/x', value: 1 }]).problem
  const hint = (path: string, value: string) =>
    `the parent "${path}" does not exist; add it first with {"op":"add","path":"${path}","value":${value}}`
  assert.equal(missing('/a/b'), hint('/a', '{}'))
  assert.equal(missing('/spec/a~1b/c/d'), hint('/spec/a~1b', '{}'))
  assert.equal(missing('/spec/list/-'), hint('/spec/list', '[]'))
  assert.equal(missing('/spec/list/0/name'), hint('/spec/list', '[]'))
  assert.equal(missing('/a/b', 'copy'), hint('/a', '{}'))
  assert.equal(missing('/a/b', 'move'), hint('/a', '{}'))
  for (const op of ['remove', 'replace', 'test']) assert.equal(missing('/a/b', op), 'the parent "/a" does not exist')
  assert.equal(missing(`/${'x'.repeat(300)}/b`), 'a parent of the path does not exist')
})

test('distinguishes malformed patches from failed ones', () => {
  for (const patch of [{}, null, 'x', 1, [1], [null], [[]]]) assert.equal(failure({}, patch).kind, 'malformed')
  const failing = [
    {},
    { op: 'spam', path: '/a' },
    { op: 'add', path: '/a' },
    { op: 'add', value: 1 },
    { op: 'add', path: 'a', value: 1 },
  ]
  for (const operation of failing) assert.equal(failure({}, [operation]).kind, 'failed')
  for (const path of ['/~', '/~2', '/a~']) assert.equal(failure({}, [{ op: 'add', path, value: 1 }]).kind, 'failed')
  assert.equal(failure({}, [{ op: 'remove', path: '' }]).kind, 'failed')
  assert.equal(failure({}, [{ op: 'copy', path: '/a' }]).problem, "the member 'from' is missing or not a string")
})

test('reads own members only, and __proto__ is an ordinary key', () => {
  for (const path of ['/constructor', '/toString', '/__proto__', '/__proto__/polluted', '/constructor/prototype']) {
    for (const op of ['test', 'replace', 'remove']) failure({ a: {} }, [{ op, path, value: {} }])
  }
  failure([], [{ op: 'test', path: '/length', value: 0 }])
  const result = applyJsonPatch({}, [
    { op: 'add', path: '/__proto__', value: { polluted: 1 } },
    { op: 'add', path: '/__proto__/more', value: 2 },
    { op: 'copy', from: '/__proto__', path: '/constructor' },
  ])
  assert.equal(JSON.stringify(result), '{"__proto__":{"polluted":1,"more":2},"constructor":{"polluted":1,"more":2}}')
  assert.equal(({} as { polluted?: number }).polluted, undefined)
})

test('a value can be moved onto itself, but not into itself', () => {
  assert.match(failure({ a: { b: {} } }, [{ op: 'move', from: '/a', path: '/a/b/c' }]).problem, /into itself/)
  assert.match(failure({ a: 1 }, [{ op: 'move', from: '', path: '/b' }]).problem, /into itself/)
  assert.deepEqual(plain(applyJsonPatch({ a: { b: 1 } }, [{ op: 'move', from: '/a', path: '/a' }])), { a: { b: 1 } })
  failure({}, [{ op: 'move', from: '/a', path: '/a' }])
})

test('a copy is independent of the original', () => {
  const result = applyJsonPatch({ a: { list: [1] } }, [
    { op: 'add', path: '/a/x', value: 1 },
    { op: 'copy', from: '/a', path: '/b' },
    { op: 'add', path: '/b/list/-', value: 2 },
    { op: 'add', path: '/a/y', value: 3 },
  ])
  assert.deepEqual(plain(result), { a: { list: [1], x: 1, y: 3 }, b: { list: [1, 2], x: 1 } })
})

test('the guard sees every pointer, and its error has the operation', () => {
  const seen: string[] = []
  const guard: PatchOptions['guard'] = (op, pointer) => seen.push(`${op} ${formatPointer(pointer)}`)
  applyJsonPatch(
    { a: 1 },
    [
      { op: 'copy', from: '/a', path: '/b~1c' },
      { op: 'test', path: '', value: { a: 1, 'b/c': 1 } },
    ],
    { guard },
  )
  assert.deepEqual(seen, ['copy /a', 'copy /b~1c', 'test '])
  const error = failure({ a: 1 }, [{ op: 'move', from: '/a', path: '/b' }], {
    guard: (_, __, refuse) => refuse('hidden'),
  })
  assert.deepEqual([error.index, error.problem, error.kind], [0, 'hidden', 'failed'])
})

test('counts 10,001 operations without applying them', () => {
  const patch = Array.from({ length: 10_001 }, () => ({ op: 'nonsense' }))
  assert.ok(cpuMilliseconds(() => assert.equal(patchOperations(patch), 10_001)) < 100)
  assert.equal(patchOperations({}), 0)
})

test('unknown members are listed for strict field validation', () => {
  assert.deepEqual(
    unknownMembers([
      { op: 'add', path: '/a', value: 1, foo: 1 },
      { op: 'test', bar: 2, baz: 3 },
    ]),
    ['[0].foo', '[1].bar', '[1].baz'],
  )
  assert.deepEqual(unknownMembers({}), [])
  assert.equal(unknownMembers(Array.from({ length: 500 }, () => ({ x: 1 }))).length, 100)
})

test('a chain of copies stops at 3 MiB', () => {
  const patch = Array.from({ length: 10_000 }, () => ({ op: 'copy', from: '/a', path: '/a/-' }))
  let error: PatchError | undefined
  assert.ok(cpuMilliseconds(() => (error = failure({ a: ['xxxxxxxx'] }, patch))) < 500)
  assert.match(error?.problem ?? '', /^(?:the copies are too large|nested deeper)/)
  const strings = Array.from({ length: 1000 }, () => ({ op: 'copy', from: '/a', path: '/b' }))
  assert.equal(failure({ a: 'x'.repeat(10_000) }, strings).problem, 'the copies are too large')
  assert.equal(
    failure({ a: 'é'.repeat(10) }, [{ op: 'copy', from: '/a', path: '/b' }], { maxCopiedBytes: 83 }).index,
    0,
  )
  applyJsonPatch({ a: 'e'.repeat(10) }, [{ op: 'copy', from: '/a', path: '/b' }], { maxCopiedBytes: 74 })
})

test('a hostile patch costs little: wide lists, wide maps, deep moves', () => {
  const list = Array.from({ length: 700_000 }, () => 0)
  const wide = readJson(`{${list.slice(0, 100_000).map((_, index) => `"k${index}":0`)}}`).value
  const times = (operation: Json) => Array.from({ length: 10_000 }, () => operation)
  const wrap = Array.from({ length: 5_000 }, () => [
    { op: 'move', from: '/a', path: '/b' },
    { op: 'add', path: '/a', value: {} },
    { op: 'move', from: '/b', path: '/a/x' },
  ]).flat()
  assert.ok(cpuMilliseconds(() => failure({ list }, times({ op: 'add', path: '/list/0', value: 1 }))) < 2_000)
  assert.ok(cpuMilliseconds(() => failure({ list }, times({ op: 'remove', path: '/list/0' }))) < 2_000)
  assert.ok(
    cpuMilliseconds(() =>
      failure({ wide }, [
        ...times({ op: 'replace', path: '/wide/k0', value: 0 }),
        { op: 'test', path: '/wide', value: {} },
      ]),
    ) < 2_000,
  )
  assert.match(failure({ a: {} }, wrap).problem, /nests deeper than 100/)
})

test('pointers survive a round trip', () => {
  const step = fc.oneof(
    fc.string({ maxLength: 5 }),
    fc.string({ unit: fc.constantFrom('~', '/', '0', '1', 'a'), maxLength: 5 }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 5 }), steps => {
      const text = formatPointer(steps)
      assert.deepEqual(parsePointer(text), steps)
      assert.equal(formatPointer(parsePointer(text) ?? ['?']), text)
    }),
    { numRuns: 3000 },
  )
  assert.equal(parsePointer('a'), undefined)
})

/** A naive implementation that changes a deep copy in place. */
function naive(document: Json, patch: readonly { op: string; path: string[]; from: string[]; value: Json }[]): unknown {
  const fresh = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
  const box = { root: fresh(document) } as { [key: string]: unknown }
  const look = (steps: string[]): { holder: { [key: string]: unknown }; last: string; isThere: boolean } => {
    let holder = box
    const path = ['root', ...steps]
    for (const step of path.slice(0, -1)) {
      if (!Object.hasOwn(holder, step) || (Array.isArray(holder) && !/^(0|[1-9][0-9]*)$/.test(step)))
        throw new Error('nothing')
      holder = holder[step] as { [key: string]: unknown }
      if (typeof holder !== 'object' || holder === null) throw new Error('no container')
    }
    const last = path.at(-1) as string
    const isThere = Object.hasOwn(holder, last) && (!Array.isArray(holder) || /^(0|[1-9][0-9]*)$/.test(last))
    return { holder, last, isThere }
  }
  const get = (steps: string[]): unknown => {
    const { holder, last, isThere } = look(steps)
    if (!isThere) throw new Error('nothing')
    return fresh(holder[last])
  }
  const remove = (steps: string[]): void => {
    get(steps)
    const { holder, last } = look(steps)
    if (steps.length === 0) throw new Error('root')
    if (Array.isArray(holder)) holder.splice(Number(last), 1)
    else delete holder[last]
  }
  const add = (steps: string[], value: unknown): void => {
    const { holder, last } = look(steps)
    const set = (key: string) =>
      Object.defineProperty(holder, key, { value, writable: true, enumerable: true, configurable: true })
    if (!Array.isArray(holder)) set(last)
    else if (last === '-') holder.push(value)
    else if (!/^(0|[1-9][0-9]*)$/.test(last) || Number(last) > holder.length) throw new Error('index')
    else holder.splice(Number(last), 0, value)
  }
  for (const { op, path, from, value } of patch) {
    if (op === 'add') add(path, fresh(value))
    else if (op === 'remove') remove(path)
    else if (op === 'replace') {
      get(path)
      const { holder, last } = look(path)
      Object.defineProperty(holder, last, { value: fresh(value), writable: true, enumerable: true, configurable: true })
    } else if (op === 'copy') add(path, get(from))
    else if (op === 'move') {
      const moved = get(from)
      if (from.every((step, depth) => path[depth] === step)) {
        if (from.length === path.length) continue
        throw new Error('into itself')
      }
      remove(from)
      add(path, moved)
    } else assert.deepEqual(get(path), fresh(value))
  }
  return box['root']
}

const key = fc.constantFrom('a', 'b', '__proto__', '0', '1')
const { tree } = fc.letrec<{ tree: Json; leaf: Json }>(tie => ({
  leaf: fc.constantFrom<Json>(null, 0, 1, '', 'x', true),
  tree: fc.oneof(
    { depthSize: 'small' },
    tie('leaf'),
    fc.dictionary(key, tie('tree'), { maxKeys: 3 }),
    fc.array(tie('tree'), { maxLength: 3 }),
  ),
}))
const pointer = fc.array(
  fc.oneof({ weight: 4, arbitrary: key }, { weight: 1, arbitrary: fc.constantFrom('-', '2', '01', 'constructor') }),
  { maxLength: 3 },
)
const operation = fc.record({
  op: fc.constantFrom('add', 'add', 'remove', 'replace', 'move', 'copy', 'test'),
  path: pointer,
  from: pointer,
  value: tree,
})

const attempt = (run: () => unknown): string => {
  try {
    return JSON.stringify(run(), (_, value) =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
        : value,
    )
  } catch {
    return 'error'
  }
}

test('patches agree with a naive second implementation and change neither document nor patch', () => {
  let applied = 0
  fc.assert(
    fc.property(tree, fc.array(operation, { maxLength: 5 }), (document, operations) => {
      const patch = operations.map(({ op, path, from, value }) => ({
        op,
        path: formatPointer(path),
        from: formatPointer(from),
        value,
      }))
      const before = [JSON.stringify(document), JSON.stringify(patch)]
      const result = attempt(() => applyJsonPatch(document, patch))
      if (result !== 'error') applied++
      assert.equal(
        result,
        attempt(() => naive(document, operations)),
      )
      assert.deepEqual([JSON.stringify(document), JSON.stringify(patch)], before)
    }),
    { numRuns: 5_000 },
  )
  assert.ok(applied > 500, `only ${applied} patches could be applied`)
})

test('add and remove, and moving back and forth, restore the document', () => {
  const map = fc.dictionary(key, tree, { maxKeys: 4 })
  fc.assert(
    fc.property(map, tree, (document, value) => {
      const added = applyJsonPatch(document, [
        { op: 'add', path: '/new', value },
        { op: 'test', path: '/new', value },
      ])
      assert.deepEqual(plain(applyJsonPatch(added, [{ op: 'remove', path: '/new' }])), plain(document))
      const moved = applyJsonPatch(added, [{ op: 'move', from: '/new', path: '/other' }])
      assert.deepEqual(plain(applyJsonPatch(moved, [{ op: 'move', from: '/other', path: '/new' }])), plain(added))
      assert.deepEqual(plain(applyJsonPatch(added, [{ op: 'replace', path: '', value: document }])), plain(document))
    }),
    { numRuns: 2000 },
  )
})
