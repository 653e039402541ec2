// An ordered set of strings in chunks, for the cache's key order and its label index: cheap to change at 100,000 keys.
// Plain data and functions rather than an object with methods, because a label index has one of these per value.

const CHUNK = 512

/** Chunks are never empty; every key of a chunk is below every key of the next. */
export type SortedKeys = { readonly chunks: string[][]; size: number }

/** A place in the order; `nextKey` moves it on. */
export type Walk = { readonly keys: SortedKeys; chunk: number; index: number }

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
  // Keys often come in order; splitting off only the end then leaves full chunks behind instead of half-empty ones.
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

/** How many keys are below `key`. */
export function rankOf(keys: SortedKeys, key: string): number {
  const at = chunkOf(keys, key)
  let rank = 0
  for (let i = 0; i < at; i++) rank += keys.chunks[i]!.length
  const chunk = keys.chunks[at]
  return chunk === undefined ? rank : rank + indexIn(chunk, key)
}

/** A walk that starts at the first key that is not below `start`. */
export function walkFrom(keys: SortedKeys, start: string): Walk {
  const chunk = chunkOf(keys, start)
  const found = keys.chunks[chunk]
  return { keys, chunk, index: found === undefined ? 0 : indexIn(found, start) }
}

function peekKey(walk: Walk): string | undefined {
  return walk.keys.chunks[walk.chunk]?.[walk.index]
}

export function nextKey(walk: Walk): string | undefined {
  const chunk = walk.keys.chunks[walk.chunk]
  if (chunk === undefined) return undefined
  const key = chunk[walk.index++]
  if (walk.index >= chunk.length) {
    walk.chunk++
    walk.index = 0
  }
  return key
}

/** The next key of several walks together, each key once. */
export function nextOfAll(walks: readonly Walk[]): string | undefined {
  if (walks.length === 1) return nextKey(walks[0]!)
  let least: string | undefined
  for (const walk of walks) {
    const key = peekKey(walk)
    if (key !== undefined && (least === undefined || key < least)) least = key
  }
  if (least !== undefined) for (const walk of walks) if (peekKey(walk) === least) nextKey(walk)
  return least
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
