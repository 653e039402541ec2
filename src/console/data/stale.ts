// Whether the shared watches are connected. Any feed that lost its connection makes the data of the page stale.

const lost = new Set<string>()
const callbacks = new Set<() => void>()

export function setStale(feed: string, isLost: boolean): void {
  const before = lost.size > 0
  if (isLost) lost.add(feed)
  else lost.delete(feed)
  if (before !== lost.size > 0) for (const callback of callbacks) callback()
}

export const isStale = (): boolean => lost.size > 0

export function followStale(callback: () => void): () => void {
  callbacks.add(callback)
  return () => callbacks.delete(callback)
}
