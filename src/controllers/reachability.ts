// Whether one thing leads to another over any number of steps: how the garbage collector finds cycles of owners.

/** Without recursion: chains are as long as clients make them. */
export function reaches<T>(from: T, to: T, next: (one: T) => Iterable<T>): boolean {
  const seen = new Set<T>([from])
  for (const one of seen)
    for (const other of next(one)) {
      if (other === to) return true
      seen.add(other) // and is walked on from in its turn: a set is iterated in order of insertion
    }
  return false
}
