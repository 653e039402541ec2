// Drafts of edits. They survive a reload, an expired session and navigation. Stored encrypted with a key that scripts cannot read out,
// because a draft of a secret contains its values. Each tab stores its own copy, so two tabs do not overwrite each other.

import { useEffect, useRef, useState } from 'react'
import { basePath } from './server.ts'

const database = 'platform-console'
const store = 'drafts'
const keyName = 'key'

/** Opened once: a page that closes soon after the last key press has little time to store it. */
let opened: Promise<IDBDatabase> | undefined
function open(): Promise<IDBDatabase> {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(database, 1)
    request.onupgradeneeded = () => request.result.createObjectStore(store)
    request.onsuccess = () => {
      const db = request.result
      db.onclose = () => {
        opened = undefined
      }
      resolve(db)
    }
    request.onerror = () => {
      opened = undefined
      reject(request.error ?? new Error('IndexedDB is not available'))
    }
  })
  return opened
}

async function run<T>(mode: IDBTransactionMode, action: (drafts: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const db = await open()
  return new Promise<T>((resolve, reject) => {
    const request = action(db.transaction(store, mode).objectStore(store))
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error ?? new Error('IndexedDB failed'))
  })
}

let last: Promise<unknown> = Promise.resolve()
/** Encrypting takes a moment. In order, an older text never replaces a newer one, or a draft that was dropped. */
function inOrder<T>(work: () => Promise<T>): Promise<T> {
  const done = last.then(work)
  last = done.catch(() => {})
  return done
}

const storedKey = () => run<CryptoKey | undefined>('readonly', drafts => drafts.get(keyName))

/** Read every time: a sign-out in another tab deletes it. Of two tabs that make one, the first wins. */
async function keyOf(): Promise<CryptoKey> {
  const stored = await storedKey()
  if (stored) return stored
  const made = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt'])
  await run('readwrite', drafts => drafts.add(made, keyName)).catch(() => {})
  return (await storedKey()) ?? made
}

type Sealed = { readonly iv: Uint8Array<ArrayBuffer>; readonly data: ArrayBuffer; readonly time: number }
type CopyKey = [type: 'draft', name: string, tab: string]

const tabName = 'platform-console-tab'
/** Survives a reload of the tab. */
function tabOf(): string {
  const made = sessionStorage.getItem(tabName) ?? crypto.randomUUID()
  sessionStorage.setItem(tabName, made)
  return made
}

const copyKey = (name: string): CopyKey => ['draft', name, tabOf()]
/** Copies of other tabs that this tab has taken over. */
const taken = new Map<string, { readonly key: CopyKey; readonly time: number }>()

/** The name of a draft, of one user and one server. */
export const draftName = (user: string, ...parts: readonly string[]): string =>
  JSON.stringify([basePath, user, ...parts])

const saveDraft = (name: string, draft: unknown): Promise<void> =>
  inOrder(async () => {
    const iv = crypto.getRandomValues(new Uint8Array(12))
    const text = new TextEncoder().encode(JSON.stringify(draft))
    const data = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, await keyOf(), text)
    await run('readwrite', drafts => drafts.put({ iv, data, time: Date.now() } satisfies Sealed, copyKey(name)))
  })

/** The copy of this tab, or the newest one of others. */
const loadDraft = <T>(name: string): Promise<T | undefined> =>
  inOrder(async () => {
    const own = copyKey(name)
    const keys = (await run('readonly', drafts =>
      drafts.getAllKeys(IDBKeyRange.bound(own.slice(0, 2), [...own.slice(0, 2), []])),
    )) as CopyKey[]
    const copies = await Promise.all(
      keys.map(async key => ({ key, sealed: await run<Sealed>('readonly', drafts => drafts.get(key)) })),
    )
    const found =
      copies.find(({ key }) => key[2] === own[2]) ??
      copies.toSorted((one, other) => other.sealed.time - one.sealed.time)[0]
    if (!found) return undefined
    const { iv, data, time } = found.sealed
    const text = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, await keyOf(), data)
    if (found.key[2] !== own[2]) taken.set(name, { key: found.key, time })
    return JSON.parse(new TextDecoder().decode(text)) as T
  })

/** Keeps copies of other tabs, except the one that this tab began with. */
const dropDraft = (name: string): Promise<void> =>
  inOrder(async () => {
    await run('readwrite', drafts => drafts.delete(copyKey(name)))
    const from = taken.get(name)
    taken.delete(name)
    if (!from) return
    const now = await run<Sealed | undefined>('readonly', drafts => drafts.get(from.key))
    if (now?.time === from.time) await run('readwrite', drafts => drafts.delete(from.key))
  })

/** On sign-out: the next person at this browser finds nothing. */
export const dropAllDrafts = (): Promise<void> =>
  inOrder(async () => {
    await run('readwrite', drafts => drafts.clear())
  })

type DraftState<T> = readonly [
  draft: T | undefined,
  set: (next: T | undefined) => void,
  /** For callbacks that began before the last change. */
  latest: { readonly current: T | undefined },
]

/** A draft that survives. undefined: there is none. Text that somebody types before it is loaded stays. */
export function useDraft<T>(name: string): DraftState<T> {
  const [draft, setDraft] = useState<T>()
  const latest = useRef<T>(undefined)
  const isTouched = useRef(false)
  useEffect(() => {
    let isOpen = true
    isTouched.current = false
    latest.current = undefined
    setDraft(undefined)
    void loadDraft<T>(name)
      .then(found => {
        if (!isOpen || isTouched.current || found === undefined) return
        latest.current = found
        setDraft(found)
      })
      .catch(() => {})
    return () => {
      isOpen = false
    }
  }, [name])
  const set = (next: T | undefined) => {
    isTouched.current = true
    latest.current = next
    setDraft(next)
    void (next === undefined ? dropDraft(name) : saveDraft(name, next)).catch(() => {})
  }
  return [draft, set, latest]
}
