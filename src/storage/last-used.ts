// When something was last used (D19): a side table without revision or event, remembered at once and written off the request's path.

export type Activity = {
  /** `id` is a uid, or whatever else its owner keeps a time for. An earlier time than the known one changes nothing. */
  touch(id: string, time: number): void
  last(id: string): number | undefined
  forget(id: string): void
  /** Resolves when everything known now is durable. */
  flush(): Promise<void>
  close(): Promise<void>
}

/** A time of `undefined` forgets the id. */
export type SaveTimes = (times: readonly (readonly [id: string, time: number | undefined])[]) => Promise<void>

export type ActivityOptions = {
  readonly loaded?: ReadonlyMap<string, number>
  readonly save?: SaveTimes
  /** Nothing is written more often than this, and so no id is either. */
  readonly intervalMs?: number
}

export function openActivity(options: ActivityOptions = {}): Activity {
  const { loaded, save = async () => {}, intervalMs = 60_000 } = options
  const times = new Map(loaded)
  let changed = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let saving: Promise<void> = Promise.resolve()

  function change(id: string): void {
    changed.add(id)
    // A failed write is retried a minute later; a slightly old time does no harm.
    timer ??= setTimeout(() => void flush().catch(() => {}), intervalMs).unref()
  }

  async function write(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    if (changed.size === 0) return
    const ids = changed
    changed = new Set()
    try {
      await save(Array.from(ids, id => [id, times.get(id)] as const))
    } catch (error) {
      for (const id of ids) change(id)
      throw error
    }
  }

  /** One after the other, so that an older time is never written over a newer one. */
  function flush(): Promise<void> {
    saving = saving.then(write, write)
    return saving
  }

  return {
    touch(id, time) {
      if (time <= (times.get(id) ?? Number.NEGATIVE_INFINITY)) return
      times.set(id, time)
      change(id)
    },
    last: id => times.get(id),
    forget(id) {
      if (times.delete(id)) change(id)
    },
    flush,
    async close() {
      await flush().finally(() => clearTimeout(timer))
    },
  }
}
