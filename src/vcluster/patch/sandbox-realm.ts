// Prepares the realm in which expressions run. sandbox-worker.ts sends its source text into QuickJS.

import type { Dns, RealmFunctions } from './sandbox-functions.ts'

/** Input of a batch, as JSON. `context` is absent if the expression does not use it. */
export type RealmInput = {
  readonly values: readonly unknown[]
  readonly context?: { readonly vcluster: unknown; readonly hostObject: unknown; readonly virtualObject: unknown }
  /** One per value, if there is a context. */
  readonly paths?: readonly string[]
  readonly dns?: Dns
}

/** `failures` lists the values without a result. */
export type RealmOutput = {
  readonly values: readonly unknown[]
  readonly failures: readonly { readonly index: number; readonly reason: Reason; readonly message: string }[]
}
export type Reason = 'threw' | 'result' | 'memory' | 'time'

export type RealmOptions = {
  readonly globals: readonly string[]
  readonly maxOutput: number
  readonly maxDepth: number
}

type Call = (value: unknown, exists: boolean, context: unknown, ...functions: readonly unknown[]) => unknown

/** Must be self-contained, because QuickJS has no access to this module. Returns the function that evaluates a batch. */
export function prepareRealm(
  { globals, maxOutput, maxDepth }: RealmOptions,
  { atob, btoa, makeDns }: RealmFunctions,
): (call: Call, input: string) => string {
  const root = globalThis as unknown as { [name: string]: unknown }
  const { freeze, getOwnPropertyDescriptor, getPrototypeOf, defineProperty, keys, values, entries } = Object
  const { isArray } = Array
  const { parse, stringify } = JSON
  const { ownKeys, construct, deleteProperty } = Reflect
  const plainPrototype = Object.prototype

  const isContainer = (value: unknown): value is object =>
    (typeof value === 'object' && value !== null) || typeof value === 'function'

  // Remove clock and randomness, so that expressions are deterministic.
  const unavailable = (name: string, instead: string) => {
    const fail = () => {
      throw new TypeError(`${name} is not available: ${instead}`)
    }
    return fail
  }
  const noClock = 'results must depend only on the inputs'
  const RealDate = Date
  const FixedDate = function (this: unknown, ...args: unknown[]): unknown {
    if (new.target === undefined || args.length === 0) return unavailable('Date without arguments', noClock)()
    return construct(RealDate, args, new.target)
  }
  defineProperty(FixedDate, 'name', { value: 'Date' })
  defineProperty(FixedDate, 'prototype', { value: RealDate.prototype })
  Object.assign(FixedDate, { UTC: RealDate.UTC, parse: RealDate.parse, now: unavailable('Date.now', noClock) })
  defineProperty(RealDate.prototype, 'constructor', { value: FixedDate })
  root['Date'] = FixedDate
  Math.random = unavailable('Math.random', noClock) as () => number

  // These setters store values in the engine even if the object is frozen.
  for (const key of ['prepareStackTrace', 'stackTraceLimit', 'captureStackTrace']) deleteProperty(Error, key)

  // Disable code generation: the constructors of the four kinds of functions.
  const samples = [() => 0, function* () {}, async () => 0, async function* () {}]
  const noCode = unavailable('Function', 'expressions cannot create code')
  for (const sample of samples) defineProperty(getPrototypeOf(sample), 'constructor', { value: noCode })

  /** Copies a result without getters and `toJSON`. Throws for values that JSON would silently drop or change. */
  const plain = (value: unknown, depth: number): unknown => {
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
    if (typeof value === 'number') {
      if (value - value !== 0) throw new TypeError(`the result contains ${value}, which is not valid JSON`)
      return value
    }
    if (typeof value !== 'object')
      throw new TypeError(
        `the result contains ${typeof value === 'undefined' ? 'undefined in a list' : `a ${typeof value}`}, which is not valid JSON`,
      )
    if (depth > maxDepth) throw new TypeError(`the result is nested more than ${maxDepth} deep, or contains itself`)
    if (isArray(value)) {
      const out: unknown[] = []
      for (let at = 0; at < value.length; at++) out[at] = plain(value[at], depth + 1)
      return out
    }
    const prototype = getPrototypeOf(value)
    if (prototype !== plainPrototype && prototype !== null)
      throw new TypeError(
        'the result contains an object that is not a plain map (a Date, a Map, a class?), which is not valid JSON',
      )
    const out: { [key: string]: unknown } = { __proto__: null } as never
    for (const key of keys(value)) {
      const inner = (value as { [key: string]: unknown })[key]
      if (inner !== undefined) out[key] = plain(inner, depth + 1)
    }
    return out
  }

  const deepFreeze = <T>(value: T): T => {
    if (isContainer(value)) for (const inner of values(freeze(value))) deepFreeze(inner)
    return value
  }

  const describe = (error: unknown): string => {
    try {
      const text = error instanceof Error ? `${error.name}: ${error.message}` : `threw ${stringify(error)}`
      return text.slice(0, 300)
    } catch {
      return 'threw a value that cannot be printed'
    }
  }

  const sized = (value: unknown, size: number): unknown => {
    if (size <= maxOutput) return value
    throw new TypeError(`the result is too long: ${size} characters, at most ${maxOutput}`)
  }
  const checked = (result: unknown): unknown => {
    if (typeof result === 'string') return sized(result, result.length)
    if (result === undefined || result === null || typeof result === 'boolean') return result ?? null
    const copy = plain(result, 0)
    return typeof copy === 'object' ? sized(copy, (stringify(copy) as string).length) : copy
  }
  const failureOf = (index: number, reason: Reason, error: unknown) => {
    const message = describe(error)
    if (message.includes('out of memory')) return { index, reason: 'memory', message } as const
    return { index, reason, message: reason === 'result' ? message.replace(/^TypeError: /, '') : message }
  }

  /** Uses methods, because they have no writable `prototype`. */
  const overridable = (prototype: object, key: string, value: unknown) => {
    const accessor = {
      get: () => value,
      set(this: object, given: unknown) {
        if (this === prototype) throw new TypeError(`"${key}" is read-only`)
        defineProperty(this, key, { value: given, writable: true, enumerable: true, configurable: true })
      },
    }
    for (const method of values(accessor)) freeze(method)
    return accessor
  }

  // Freeze every reachable object and delete all other globals.
  const roots = [root, ...samples, ...samples.map(sample => getPrototypeOf(sample)), unavailable, noCode, atob, btoa]
  const helpers = [[1].values().map(Boolean), Iterator.from({ next: Boolean } as never)]
  const strictArguments = (function () {
    // biome-ignore lint/complexity/noArguments: the object itself is wanted
    return arguments
  })()
  const iterators = [
    strictArguments,
    ...helpers,
    [][Symbol.iterator](),
    ''[Symbol.iterator](),
    new Map().entries(),
    new Set().values(),
    ''.matchAll(/a/g),
  ]
  const queue: unknown[] = [...roots, ...iterators]
  const reached = new Set<object>()
  for (let next = queue.pop(); queue.length || next; next = queue.pop()) {
    if (!isContainer(next) || reached.has(next)) continue
    reached.add(next)
    queue.push(getPrototypeOf(next))
    for (const key of ownKeys(next)) {
      const { value, get, set } = getOwnPropertyDescriptor(next, key) as PropertyDescriptor
      queue.push(value, get, set)
    }
  }
  // `map["constructor"] = 1` must still work although the prototype is frozen.
  deleteProperty(plainPrototype, '__proto__')
  for (const prototype of [plainPrototype, Error.prototype] as object[])
    for (const [key, { value, writable }] of entries(Object.getOwnPropertyDescriptors(prototype)))
      if (writable) defineProperty(prototype, key, overridable(prototype, key, value))
  for (const name of ownKeys(root)) if (!globals.includes(name as string)) deleteProperty(root, name)
  for (const object of reached) freeze(object)

  return (call, input) => {
    const batch = parse(input) as RealmInput
    const dns = freeze(makeDns(batch.dns))
    const shared = batch.context && deepFreeze(batch.context)
    const results: unknown[] = []
    const failures: RealmOutput['failures'][number][] = []
    for (let index = 0; index < batch.values.length; index++) {
      const value = batch.values[index]
      const context = shared && freeze({ ...shared, path: batch.paths?.[index] })
      let reason: Reason = 'threw'
      try {
        const result = call(value, value !== null, context, atob, btoa, dns)
        reason = 'result'
        results[index] = checked(result)
      } catch (error) {
        results[index] = null
        failures[failures.length] = failureOf(index, reason, error)
      }
    }
    return stringify({ values: results, failures })
  }
}
