// A bare store in a separate process: reports its content, then writes and reports acknowledged writes, until it is killed. store-crashes.ts starts it.

import { Buffer } from 'node:buffer'
import { openSync, writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { openSqliteStore } from '../../src/storage/sqlite/store.ts'
import type { Entry, Key } from '../../src/storage/store.ts'

const [file = '', said = '', seed = ''] = process.argv.slice(2)
/** A file, because its content survives this process. */
const out = openSync(said, 'w')
const say = (line: object) => writeSync(out, `${JSON.stringify(line)}\n`)

// If the parent was killed, nothing else ends this process.
const parent = process.ppid
setInterval(() => process.ppid === parent || process.exit(), 1000).unref()

const head = '{"metadata":{"resourceVersion":"'
const keyOf = (name: string): Key => ({ bucket: 'things', namespace: '', name })
const storedAs = (value: string) => ({ text: Buffer.from(`${head}"},"value":"${value}"}`), gap: head.length })
const seen = ({ key, revision, text }: Entry) => ({
  name: key.name,
  version: revision,
  value: JSON.parse(text.toString()).value as string,
})

const store = await openSqliteStore({ file, history: { minEvents: 50, minAgeMs: 0 } })
say({ state: store.list({ bucket: 'things' }).entries.map(seen), revision: store.revision })
// A killed process cannot do this at its end.
flushCompileCache()
console.log('open')

/** Each lane has its own names. It changes an existing name, or sometimes deletes it. */
const lane = async (lane: number) => {
  for (let n = 0; ; n++) {
    const name = `l${lane}-${n % 5}`
    const there = store.get(keyOf(name))
    const isDelete = there !== undefined && n % 7 === 6
    const value = `${seed}-${n}-${'x'.repeat((n * 37) % 3000)}`
    say({ open: name, ...(isDelete ? {} : { value }) })
    const version = await store.commit([
      isDelete
        ? { type: 'delete', key: keyOf(name), expect: there.revision }
        : { type: 'put', key: keyOf(name), value: storedAs(value), expect: there?.revision ?? 0 },
    ])
    say({ acknowledged: name, ...(isDelete ? {} : { version }) })
  }
}
await Promise.all(Array.from({ length: 6 }, (_, n) => lane(n)))
