// The recorded requests and responses of clients. `start` and `end` are ticks of one counter.
// A request that ended at a lower tick than another one began was complete before it.

/** An observed object. */
export type Sight = {
  readonly name: string
  readonly version: number
  readonly uid: string
  readonly value: string
  readonly color: string
}

type Interval = { readonly start: number; readonly end: number }

/**
 * `update` names a version and sets value and color; `same` sends what was read at its version; `patch` sets the value, `relabel`
 * the color. `expect` is a precondition. `code` 0: no response.
 */
export type Write = Interval & {
  readonly op: 'create' | 'update' | 'same' | 'patch' | 'relabel' | 'delete'
  readonly name: string
  readonly value?: string
  readonly color?: string
  readonly expect?: number
  readonly dryRun?: boolean
  readonly code: number
  /** The response; for a deletion only the uid is known. */
  readonly seen?: Sight
  readonly uid?: string
}

/** `since`: the read accepts older state (resourceVersion=0), but everything from before this tick must be in it. */
type Read = Interval & { readonly since?: number }

/** `asked`: the version that a rejected list asked for. */
export type Get = Read & {
  readonly name: string
  readonly code: number
  readonly seen?: Sight
  readonly asked?: number
}

/** One page. `exact`: the requested version. */
export type List = Read & {
  readonly at: number
  readonly items: readonly Sight[]
  readonly color?: string
  readonly limit?: number
  readonly after?: string
  readonly exact?: number
  /** On a later page: the version of the first page. */
  readonly began?: number
  readonly more: boolean
  readonly remaining?: number
}

export type Told = { readonly tick: number; readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' } & Sight

/** One watch request. Sessions of one watcher follow each other, each from the last revision of the previous one. */
export type Session = {
  readonly watcher: number
  readonly from: number
  readonly color?: string
  readonly told: readonly Told[]
  /** Whether the server no longer had the history. */
  readonly gone?: boolean
  readonly end?: number
  /** Whether no session continues it, so that it may stop anywhere. */
  readonly loose?: boolean
}

export type Recording = {
  readonly writes: readonly Write[]
  readonly gets: readonly Get[]
  readonly lists: readonly List[]
  readonly sessions: readonly Session[]
  /** The start: an empty store. */
  readonly from: number
  /** The state that every watcher must reach. */
  readonly last: number
  /** History before `revision` may be gone after the tick. */
  readonly compactions?: readonly Compaction[]
}

export type Compaction = { readonly tick: number; readonly revision: number }

export type Violation = { readonly rule: string; readonly text: string }
