// Formats durations for messages, such as 1d.

const units = [
  ['w', 604_800],
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
] as const

/** Uses the largest unit without a remainder. */
export function shortDuration(seconds: number): string {
  const [unit, size] = units.find(([, one]) => seconds >= one && seconds % one === 0) ?? ['s', 1]
  return `${seconds / size}${unit}`
}
