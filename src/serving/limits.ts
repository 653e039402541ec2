// How many requests may be under way at once; one more is told to come back (429).

export type Traffic = 'read' | 'write' | 'watch'

export interface Limits {
  /** undefined: full. Otherwise the way out, to be called once. */
  enter(traffic: Traffic): (() => void) | undefined
  readonly current: { readonly [traffic in Traffic]: number }
}

export function openLimits(most: { readonly [traffic in Traffic]: number }): Limits {
  const current = { read: 0, write: 0, watch: 0 }
  const leave: { readonly [traffic in Traffic]: () => void } = {
    read: () => void current.read--,
    write: () => void current.write--,
    watch: () => void current.watch--,
  }
  return {
    current,
    enter(traffic) {
      if (current[traffic] >= most[traffic]) return undefined
      current[traffic]++
      return leave[traffic]
    },
  }
}
