// Formats durations for messages, such as 24h.

/** Each unit with the smallest count that it is used for. Settings and flags say 24h and 7d rather than 1d and 1w. */
const units = [
  ['w', 604_800, 2],
  ['d', 86_400, 2],
  ['h', 3600, 1],
  ['m', 60, 1],
] as const

/** Uses the largest unit without a remainder. */
export function shortDuration(seconds: number): string {
  const [unit, size] = units.find(([, one, least]) => seconds >= one * least && seconds % one === 0) ?? ['s', 1]
  return `${seconds / size}${unit}`
}
