// Durations as people write them: 90s, 15m, 12h, 7d, 2w. Commands with a --ttl or the like read them with it.

import { ApiError } from '../api/errors.ts'
import { UsageError } from './command.ts'
import { quoted } from './sanitize.ts'

const units: { readonly [unit: string]: number } = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** Seconds. Throws UsageError that names the flag. A bare number is none: a day and a second are too far apart to guess. */
export function readDuration(flag: string, text: string): number {
  if (/^0*[1-9]\d{0,8}$/.test(text)) {
    const each = Object.keys(units).map(unit => `${text}${unit}`)
    throw new UsageError([
      `${flag}: ${quoted(text)} must be a time with its unit: say ${each.slice(0, -1).join(', ')} or ${each.at(-1)}`,
    ])
  }
  if (!/^((\d{1,9}[smhdw])+|0)$/.test(text))
    throw new UsageError([`${flag}: ${quoted(text)} must be a time such as 90s, 15m, 12h, 7d or 2w`])
  return [...text.matchAll(/(\d+)([smhdw])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (units[unit ?? 's'] ?? 1),
    0,
  )
}

/** How long something lives. To the server 0 is no limit (D18, D31), and hardly what somebody means who says it. */
export function readLifetime(text: string, without: string): number {
  const seconds = readDuration('--ttl', text)
  if (!seconds) throw new UsageError([`--ttl: ${quoted(text)} must be more than nothing; without --ttl ${without}`])
  return seconds
}

/** Names the flag instead of the field in the server's error: `.catch(inWordsOf('--ttl', '2d', 'spec.ttl'))`. */
export const inWordsOf = (flag: string, text: string | undefined, field: string) => (error: unknown) => {
  const [cause, ...others] = (error instanceof ApiError && error.status.details?.causes) || []
  if (cause?.field !== field || others.length > 0 || text === undefined) throw error
  throw new ApiError(422, 'Invalid', `${flag} ${quoted(text)}: ${cause.message}`)
}
