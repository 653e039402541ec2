// Records acknowledged writes, and checks that a killed and restarted server has kept them.

import assert from 'node:assert/strict'

/** The last certain state of an object: an acknowledged version, or undefined if it does not exist. */
export type Known = { readonly version: number; readonly value: string } | undefined
/** A write without a response: it happened completely or not at all. `value` undefined: a deletion. */
type Open = { readonly value: string | undefined }
export type Seen = { readonly name: string; readonly version: number; readonly value: string }
export type Event = { readonly type: string; readonly name: string; readonly version: number; readonly value: string }

export function openHistory() {
  const known = new Map<string, Known>()
  const open = new Map<string, Open>()
  /** Acknowledged versions, in the order of acknowledgement. */
  const acknowledged = new Map<number, string>()
  let newest = 0

  return {
    get writes() {
      return acknowledged.size
    },
    stateOf: (name: string) => known.get(name),
    isOpen: (name: string) => open.has(name),
    begin(name: string, value: string | undefined): void {
      open.set(name, { value })
    },
    /** The server rejected the write, so nothing happened. */
    refused(name: string): void {
      open.delete(name)
    },
    acknowledge(name: string, version: number | undefined): void {
      const value = open.get(name)?.value
      open.delete(name)
      known.set(name, value === undefined || version === undefined ? undefined : { version, value })
      if (version === undefined) return
      assert.ok(!acknowledged.has(version), `revision ${version} was given twice`)
      acknowledged.set(version, name)
      newest = Math.max(newest, version)
    },
    /** Compares the state after a crash with all acknowledged writes. */
    check(state: readonly Seen[], revision: number): void {
      assert.ok(revision >= newest, `the server is at ${revision}, and had acknowledged ${newest}`)
      const there = new Map(state.map(one => [one.name, one]))
      for (const name of new Set([...known.keys(), ...open.keys(), ...there.keys()])) {
        const one = there.get(name)
        const before = known.get(name)
        const pending = open.get(name)
        const isOld =
          before === undefined ? one === undefined : one?.version === before.version && one.value === before.value
        const isNew =
          pending !== undefined &&
          pending.value === one?.value &&
          (one === undefined || one.version > (before?.version ?? 0))
        assert.ok(isOld || isNew, `${name} is ${show(one)}; acknowledged ${show(before)}, open ${show(pending)}`)
        if (one) known.set(name, one)
        else known.set(name, undefined)
        open.delete(name)
        if (one) newest = Math.max(newest, one.version)
      }
    },
    /** The events of one watch across all crashes: in order, without duplicates or gaps, and consistent with the state. */
    checkEvents(events: readonly Event[], state: readonly Seen[], from: number): void {
      const told = new Map<string, Seen>()
      let last = from
      const versions = new Set<number>()
      for (const { type, name, version, value } of events) {
        assert.ok(version > last, `an event of ${version} after one of ${last}`)
        last = version
        versions.add(version)
        const was = told.has(name)
        if (type === 'DELETED') assert.ok(told.delete(name), `${name} was deleted without having been there`)
        else {
          assert.equal(type === 'MODIFIED', was, `${type} of ${name}, which was ${was ? '' : 'not '}there`)
          told.set(name, { name, version, value })
        }
      }
      for (const [version, name] of acknowledged)
        assert.ok(versions.has(version), `the watch did not deliver ${name} at ${version}`)
      const sorted = (all: Iterable<Seen>) => [...all].sort((one, other) => (one.name < other.name ? -1 : 1))
      assert.deepEqual(sorted(told.values()), sorted(state))
    },
  }
}

const show = (value: unknown) => (value === undefined ? 'not there' : JSON.stringify(value))
