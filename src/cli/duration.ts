// Durations as people write them: 90s, 15m, 12h, 7d, 2w. Commands with a --ttl or the like read them with it.

import { UsageError } from './command.ts'

const units: { readonly [unit: string]: number } = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** Seconds. Throws UsageError that names the flag. */
export function readDuration(flag: string, text: string): number {
  const isWhole = /^(\d{1,9}[smhdw])+$/.test(text) || /^\d{1,9}$/.test(text)
  if (!isWhole) throw new UsageError([`${flag}: "${text}" must be a time such as 90s, 15m, 12h, 7d or 2w`])
  if (/^\d+$/.test(text)) return Number(text)
  return [...text.matchAll(/(\d+)([smhdw])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (units[unit ?? 's'] ?? 1),
    0,
  )
}
