// Last-used times (D19): a side table without revisions or events, updated in memory at once and on disk in the background.

export type Activity = {
  /** `id` is a uid or another identifier of the caller. Times earlier than the stored one are ignored. */
  touch(id: string, time: number): void
  last(id: string): number | undefined
  forget(id: string): void
  /** Takes over a time that another replica stored; undefined: it removed the id. */
  merge(id: string, time: number | undefined): void
  /** Resolves when all current times are durable. */
  flush(): Promise<void>
  close(): Promise<void>
}

/** A time of `undefined` removes the id. */
export type SaveTimes = (times: readonly (readonly [id: string, time: number | undefined])[]) => Promise<void>

export type ActivityOptions = {
  readonly loaded?: ReadonlyMap<string, number>
  readonly save?: SaveTimes
  /** Minimum interval between writes, and so between writes of the same id. */
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

  /** Writes run one after the other, so that an older time never overwrites a newer one. */
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
    merge(id, time) {
      if (time === undefined) times.delete(id)
      else if (time > (times.get(id) ?? Number.NEGATIVE_INFINITY)) times.set(id, time)
    },
    flush,
    async close() {
      await flush().finally(() => clearTimeout(timer))
    },
  }
}
