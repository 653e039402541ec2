// Parses and formats durations, such as 90s and 24h.

/** Each unit with the smallest count that it is used for. Settings and flags say 24h and 7d rather than 1d and 1w. */
const units = [
  ['w', 604_800, 2],
  ['d', 86_400, 2],
  ['h', 3600, 1],
  ['m', 60, 1],
  ['s', 1, 1],
] as const

export const durationUnits = units.map(([unit]) => unit).toReversed()

/** Uses the largest unit without a remainder. */
export function shortDuration(seconds: number): string {
  const [unit, size] = units.find(([, one, least]) => seconds >= one * least && seconds % one === 0) ?? ['s', 1]
  return `${seconds / size}${unit}`
}

/** Returns seconds; undefined: not a duration. A number needs a unit, except 0. */
export function parseDuration(text: string): number | undefined {
  if (!/^((\d{1,9}[smhdw])+|0)$/.test(text)) return undefined
  return [...text.matchAll(/(\d+)([smhdw])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (units.find(([name]) => name === unit)?.[1] ?? 1),
    0,
  )
}
