// The realm that expressions see. Its function is not called here: sandbox-worker.ts sends its text into QuickJS.

import type { Dns, RealmFunctions } from './sandbox-functions.ts'

/** One crossing: everything is JSON. `context` is absent when the expression does not name it. */
export type RealmInput = {
  readonly values: readonly unknown[]
  readonly context?: { readonly vcluster: unknown; readonly hostObject: unknown; readonly virtualObject: unknown }
  /** One a value, when there is a context. */
  readonly paths?: readonly string[]
  readonly dns?: Dns
}

/** `failures` says which values have none of their own in `values`, and why. */
export type RealmOutput = {
  readonly values: readonly unknown[]
  readonly failures: readonly { readonly index: number; readonly reason: Reason; readonly message: string }[]
}
export type Reason = 'threw' | 'result' | 'memory' | 'time'

export type RealmOptions = {
  readonly known: readonly string[]
  readonly mostOutput: number
  readonly deepest: number
}

type Call = (value: unknown, exists: boolean, context: unknown, ...functions: readonly unknown[]) => unknown

/** Stands alone: nothing outside of it exists where it runs. Answers the function that evaluates a batch. */
export function prepareRealm(
  { known, mostOutput, deepest }: RealmOptions,
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

  // Time and chance would make the second evaluation differ from the first.
  const unavailable = (name: string, instead: string) => {
    const refuse = () => {
      throw new TypeError(`${name} is not available: ${instead}`)
    }
    return refuse
  }
  const noClock = 'a result depends on its inputs alone'
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

  // Setters behind which the engine keeps what it is given, frozen or not.
  for (const key of ['prepareStackTrace', 'stackTraceLimit', 'captureStackTrace']) deleteProperty(Error, key)

  // Code made from text: the four constructors behind the four kinds of functions.
  const samples = [() => 0, function* () {}, async () => 0, async function* () {}]
  const noCode = unavailable('Function', 'an expression makes no code')
  for (const sample of samples) defineProperty(getPrototypeOf(sample), 'constructor', { value: noCode })

  /** What JSON would leave out or bend in silence is told instead. The copy has no getters and no `toJSON`. */
  const plain = (value: unknown, depth: number): unknown => {
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
    if (typeof value === 'number') {
      if (value - value !== 0) throw new TypeError(`the result has ${value}, which is no JSON`)
      return value
    }
    if (typeof value !== 'object')
      throw new TypeError(
        `the result has ${typeof value === 'undefined' ? 'undefined in a list' : `a ${typeof value}`}, which is no JSON`,
      )
    if (depth > deepest) throw new TypeError(`the result is nested more than ${deepest} deep, or contains itself`)
    if (isArray(value)) {
      const out: unknown[] = []
      for (let at = 0; at < value.length; at++) out[at] = plain(value[at], depth + 1)
      return out
    }
    const prototype = getPrototypeOf(value)
    if (prototype !== plainPrototype && prototype !== null)
      throw new TypeError('the result has an object that is no plain map (a Date, a Map, a class?), which is no JSON')
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

  const told = (error: unknown): string => {
    try {
      const text = error instanceof Error ? `${error.name}: ${error.message}` : `threw ${stringify(error)}`
      return text.slice(0, 300)
    } catch {
      return 'threw something that cannot be shown'
    }
  }

  const sized = (value: unknown, size: number): unknown => {
    if (size <= mostOutput) return value
    throw new TypeError(`the result has ${size} characters; at most ${mostOutput} are allowed`)
  }
  const checked = (result: unknown): unknown => {
    if (typeof result === 'string') return sized(result, result.length)
    if (result === undefined || result === null || typeof result === 'boolean') return result ?? null
    const copy = plain(result, 0)
    return typeof copy === 'object' ? sized(copy, (stringify(copy) as string).length) : copy
  }
  const failureOf = (index: number, reason: Reason, error: unknown) => {
    const message = told(error)
    if (message.includes('out of memory')) return { index, reason: 'memory', message } as const
    return { index, reason, message: reason === 'result' ? message.replace(/^TypeError: /, '') : message }
  }

  /** Methods, because these have no `prototype` that could be written to. */
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

  // From here on nothing changes any more: every object that code can reach is frozen, and the rest is gone.
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
  const open: unknown[] = [...roots, ...iterators]
  const reached = new Set<object>()
  for (let next = open.pop(); open.length || next; next = open.pop()) {
    if (!isContainer(next) || reached.has(next)) continue
    reached.add(next)
    open.push(getPrototypeOf(next))
    for (const key of ownKeys(next)) {
      const { value, get, set } = getOwnPropertyDescriptor(next, key) as PropertyDescriptor
      open.push(value, get, set)
    }
  }
  // `map["constructor"] = 1` must go on working although the prototype is frozen.
  deleteProperty(plainPrototype, '__proto__')
  for (const prototype of [plainPrototype, Error.prototype] as object[])
    for (const [key, { value, writable }] of entries(Object.getOwnPropertyDescriptors(prototype)))
      if (writable) defineProperty(prototype, key, overridable(prototype, key, value))
  for (const name of ownKeys(root)) if (!known.includes(name as string)) deleteProperty(root, name)
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
