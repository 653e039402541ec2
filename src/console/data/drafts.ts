// Drafts of edits. They survive a reload, an expired session and navigation. Stored encrypted with a key that scripts cannot read out,
// because a draft of a secret contains its values.

import { useEffect, useState } from 'react'

const database = 'platform-console'
const store = 'drafts'
const keyName = 'key'

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(database, 1)
    request.onupgradeneeded = () => request.result.createObjectStore(store)
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error ?? new Error('IndexedDB is not available'))
  })
}

async function run<T>(mode: IDBTransactionMode, action: (drafts: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const db = await open()
  try {
    return await new Promise<T>((resolve, reject) => {
      const request = action(db.transaction(store, mode).objectStore(store))
      request.onsuccess = () => resolve(request.result)
      request.onerror = () => reject(request.error ?? new Error('IndexedDB failed'))
    })
  } finally {
    db.close()
  }
}

let encryptionKey: Promise<CryptoKey> | undefined
function keyOf(): Promise<CryptoKey> {
  encryptionKey ??= (async () => {
    const stored = (await run('readonly', drafts => drafts.get(keyName))) as CryptoKey | undefined
    if (stored) return stored
    const made = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt'])
    await run('readwrite', drafts => drafts.put(made, keyName))
    return made
  })()
  return encryptionKey
}

type Sealed = { readonly iv: Uint8Array<ArrayBuffer>; readonly data: ArrayBuffer }

export async function saveDraft(name: string, draft: unknown): Promise<void> {
  const iv = crypto.getRandomValues(new Uint8Array(12))
  const text = new TextEncoder().encode(JSON.stringify(draft))
  const data = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, await keyOf(), text)
  await run('readwrite', drafts => drafts.put({ iv, data } satisfies Sealed, `draft ${name}`))
}

export async function loadDraft<T>(name: string): Promise<T | undefined> {
  const sealed = (await run('readonly', drafts => drafts.get(`draft ${name}`))) as Sealed | undefined
  if (!sealed) return undefined
  const text = await crypto.subtle.decrypt({ name: 'AES-GCM', iv: sealed.iv }, await keyOf(), sealed.data)
  return JSON.parse(new TextDecoder().decode(text)) as T
}

export async function dropDraft(name: string): Promise<void> {
  await run('readwrite', drafts => drafts.delete(`draft ${name}`))
}

/** On sign-out: the next person at this browser finds nothing. */
export async function dropAllDrafts(): Promise<void> {
  encryptionKey = undefined
  await run('readwrite', drafts => drafts.clear())
}

/** A text that survives like every draft. */
export function useDraft(name: string, first: () => string): readonly [string, (value: string) => void] {
  const [value, setValue] = useState(first)
  useEffect(() => {
    let isOpen = true
    void loadDraft<string>(name)
      .then(found => isOpen && found !== undefined && setValue(found))
      .catch(() => {})
    return () => {
      isOpen = false
    }
  }, [name])
  const set = (next: string) => {
    setValue(next)
    void saveDraft(name, next).catch(() => {})
  }
  return [value, set]
}
