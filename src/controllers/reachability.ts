// Walks a graph, so that the garbage collector finds cycles of owners.

/** Everything that a walk reaches, with its start. Without recursion, because clients decide how long chains are. */
export function reachableFrom<T>(start: T, next: (one: T) => Iterable<T>): ReadonlySet<T> {
  const seen = new Set<T>([start])
  // A set is iterated in order of insertion, so new members get their turn.
  for (const one of seen) for (const other of next(one)) seen.add(other)
  return seen
}
