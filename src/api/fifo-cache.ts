// A bounded cache that evicts the oldest entries first.

export interface FifoCache<K, V> {
  get(key: K): V | undefined
  /** The key must be new. */
  add(key: K, value: V): void
}

/** Keeps the newest entry whatever its size. */
export function openFifoCache<K, V>(most: number, sizeOf: (key: K) => number): FifoCache<K, V> {
  const entries = new Map<K, V>()
  /** Keys in insertion order. Finding the first key of a Map is slow after many deletions. */
  const order: (K | undefined)[] = []
  let first = 0
  let size = 0
  return {
    get: key => entries.get(key),
    add(key, value) {
      entries.set(key, value)
      order.push(key)
      size += sizeOf(key)
      while (size > most && first < order.length - 1) {
        const oldest = order[first] as K
        order[first++] = undefined
        entries.delete(oldest)
        size -= sizeOf(oldest)
      }
      if (first > 1024 && first > order.length / 2) {
        order.splice(0, first)
        first = 0
      }
    },
  }
}
