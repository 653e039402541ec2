// Computes the resourceVersion of clusters/desired up to which everything is applied, or has a problem.

export interface AppliedVersion {
  /** The target changes with one of the events after the last `seen`. */
  changed(key: string): void
  /** All events up to this version have arrived. */
  seen(version: string): void
  /** Call before work on a target. The result is called when it is applied, or has a problem; it returns whether that is news. */
  begin(key: string): () => boolean
  current(): string
  /** Whether everything that arrived is applied, or has a problem. */
  readonly isCurrent: boolean
}

type Pending = { readonly before: string; changes: number }

export function openAppliedVersion(): AppliedVersion {
  /** In order of arrival. */
  const pending = new Map<string, Pending>()
  let last = ''
  return {
    changed(key) {
      const known = pending.get(key)
      if (known) known.changes++
      else pending.set(key, { before: last, changes: 1 })
    },
    seen(version) {
      last = version
    },
    begin(key) {
      const changes = pending.get(key)?.changes
      return () => pending.get(key)?.changes === changes && pending.delete(key)
    },
    current() {
      const [oldest] = pending.values()
      return oldest ? oldest.before : last
    },
    get isCurrent() {
      return pending.size === 0
    },
  }
}
