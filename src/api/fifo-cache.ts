// A map that keeps what came last, up to a size; the oldest goes first. For what is cheap to make again.

export interface Newest<K, V> {
  get(key: K): V | undefined
  /** Of a key that is not there yet. */
  add(key: K, value: V): void
}

/** The newest is kept however large it is. */
export function openNewest<K, V>(most: number, sizeOf: (key: K) => number): Newest<K, V> {
  const known = new Map<K, V>()
  /** Keys in the order they came: a map is slow to tell its first once many have left it. */
  const order: (K | undefined)[] = []
  let first = 0
  let size = 0
  return {
    get: key => known.get(key),
    add(key, value) {
      known.set(key, value)
      order.push(key)
      size += sizeOf(key)
      while (size > most && first < order.length - 1) {
        const oldest = order[first] as K
        order[first++] = undefined
        known.delete(oldest)
        size -= sizeOf(oldest)
      }
      if (first > 1024 && first > order.length / 2) {
        order.splice(0, first)
        first = 0
      }
    },
  }
}
