// An ordered set of strings in chunks, for the cache's key order and its label index. Changes are cheap at 100,000 keys.
// Plain data and functions rather than an object with methods, because a label index has one of these per value.

const CHUNK = 512

/** Chunks are never empty; every key of a chunk is below every key of the next. */
export type SortedKeys = { readonly chunks: string[][]; size: number }

/** A position in the order. `nextKey` advances it, up to `end`. */
export type Walk = { readonly keys: SortedKeys; readonly end: string | undefined; chunk: number; index: number }

export function sortedKeys(): SortedKeys {
  return { chunks: [], size: 0 }
}

export function addKey(keys: SortedKeys, key: string): void {
  const { chunks } = keys
  if (chunks.length === 0) {
    chunks.push([key])
    keys.size = 1
    return
  }
  const at = Math.min(chunkOf(keys, key), chunks.length - 1)
  const chunk = chunks[at]!
  const index = indexIn(chunk, key)
  if (chunk[index] === key) return
  if (index === chunk.length) chunk.push(key)
  else chunk.splice(index, 0, key)
  keys.size++
  // Keys often arrive in order. Splitting off only the end then leaves full chunks instead of half-empty ones.
  if (chunk.length > CHUNK) chunks.splice(at + 1, 0, chunk.splice(index === CHUNK ? CHUNK : CHUNK >> 1))
}

export function removeKey(keys: SortedKeys, key: string): void {
  const at = chunkOf(keys, key)
  const chunk = keys.chunks[at]
  if (chunk === undefined) return
  const index = indexIn(chunk, key)
  if (chunk[index] !== key) return
  chunk.splice(index, 1)
  keys.size--
  const next = keys.chunks[at + 1]
  if (chunk.length === 0) keys.chunks.splice(at, 1)
  else if (next !== undefined && chunk.length + next.length <= CHUNK >> 1) keys.chunks.splice(at, 2, chunk.concat(next))
}

/** The number of keys below `key`. */
export function rankOf(keys: SortedKeys, key: string): number {
  const at = chunkOf(keys, key)
  let rank = 0
  for (let i = 0; i < at; i++) rank += keys.chunks[i]!.length
  const chunk = keys.chunks[at]
  return chunk === undefined ? rank : rank + indexIn(chunk, key)
}

/** A walk that starts at the first key that is not below `start`. */
export function walkFrom(keys: SortedKeys, start: string, end?: string): Walk {
  const chunk = chunkOf(keys, start)
  const found = keys.chunks[chunk]
  return { keys, end, chunk, index: found === undefined ? 0 : indexIn(found, start) }
}

function peekKey(walk: Walk): string | undefined {
  const key = walk.keys.chunks[walk.chunk]?.[walk.index]
  return key === undefined || walk.end === undefined || key < walk.end ? key : undefined
}

export function nextKey(walk: Walk): string | undefined {
  const key = peekKey(walk)
  if (key === undefined) return undefined
  walk.index++
  if (walk.index >= walk.keys.chunks[walk.chunk]!.length) {
    walk.chunk++
    walk.index = 0
  }
  return key
}

/** Returns the next key of several walks together, without duplicates. */
export function unionOf(walks: readonly Walk[]): () => string | undefined {
  const [only] = walks
  if (only !== undefined && walks.length === 1) return () => nextKey(only)
  // A binary heap by the next key: a caller can have hundreds of terms. A sorted array is one.
  const heap = walks
    .flatMap((walk): Head[] => {
      const key = nextKey(walk)
      return key === undefined ? [] : [{ key, walk }]
    })
    .sort((a, b) => (a.key < b.key ? -1 : 1))
  let last: string | undefined
  return () => {
    for (let head = heap[0]; head !== undefined; head = heap[0]) {
      const { key } = head
      const next = nextKey(head.walk)
      const end = next === undefined ? heap.pop() : undefined
      if (next !== undefined) head.key = next
      else if (end !== undefined && heap.length > 0) heap[0] = end
      sink(heap)
      if (key === last) continue
      last = key
      return key
    }
    return undefined
  }
}

type Head = { key: string; readonly walk: Walk }

/** Moves the first head of a heap down to where it belongs. */
function sink(heap: Head[]): void {
  for (let at = 0; ; ) {
    const [left, right] = [2 * at + 1, 2 * at + 2]
    let least = at
    if (left < heap.length && heap[left]!.key < heap[least]!.key) least = left
    if (right < heap.length && heap[right]!.key < heap[least]!.key) least = right
    if (least === at) return
    const moved = heap[at]!
    heap[at] = heap[least]!
    heap[least] = moved
    at = least
  }
}

/** The first chunk whose last key is not below `key`; the number of chunks if there is none. */
function chunkOf(keys: SortedKeys, key: string): number {
  let low = 0
  let high = keys.chunks.length
  while (low < high) {
    const middle = (low + high) >> 1
    const chunk = keys.chunks[middle]!
    if (chunk[chunk.length - 1]! < key) low = middle + 1
    else high = middle
  }
  return low
}

function indexIn(chunk: readonly string[], key: string): number {
  let low = 0
  let high = chunk.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (chunk[middle]! < key) low = middle + 1
    else high = middle
  }
  return low
}
