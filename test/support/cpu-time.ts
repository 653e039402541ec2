// CPU time, in milliseconds of a reference machine, so that a limit on it does not depend on the speed of this one.

/** The time of the reference work on the machine of the measured limits: 2 cores of a Neoverse N1, Node 24. */
const referenceMilliseconds = 35
/** The CPU clock may advance in steps of 4 ms, so shorter work cannot be measured. */
const rounds = 4
/** Other work on the machine only adds time, so the smallest of several measurements counts. */
const tries = 5
const text = JSON.stringify(
  Array.from({ length: 8000 }, (_, at) => ({
    name: `object-${at}`,
    labels: { tier: 'gold', at },
    text: 'x'.repeat(60),
  })),
)

/**
 * How many times slower than the reference machine this one is, and at least 1. It is measured at each call, because
 * processes that share caches and memory bandwidth slow each other down, also in CPU time.
 */
export function slowness(): number {
  const measured = Array.from({ length: tries }, () =>
    spent(() => {
      for (let round = 0; round < rounds; round++) JSON.stringify(JSON.parse(text))
    }),
  )
  return Math.max(1, Math.min(...measured) / referenceMilliseconds)
}

let slownessAtFirst: number | undefined

/** The CPU time that synchronous work takes, as the reference machine would need it. For limits with a wide margin. */
export function cpuMilliseconds(work: () => unknown): number {
  slownessAtFirst ??= slowness()
  return spent(work) / slownessAtFirst
}

/** Of this thread only: the time of garbage collection and compilation in other threads varies. */
function spent(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}
