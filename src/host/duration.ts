// Parses durations such as 90s, 15m, 12h, 7d and 2w.

import { durationUnits, parseDuration } from '../api/duration.ts'
import { ApiError } from '../api/errors.ts'
import { UsageError } from './command.ts'
import { quoted } from './sanitize.ts'

/** Returns seconds. Throws UsageError that names the flag. Rejects a number without a unit as ambiguous. */
export function readDuration(flag: string, text: string): number {
  if (/^0*[1-9]\d{0,8}$/.test(text)) {
    const each = durationUnits.map(unit => `${text}${unit}`)
    throw new UsageError([
      `${flag}: ${quoted(text)} must have a unit: use ${each.slice(0, -1).join(', ')} or ${each.at(-1)}`,
    ])
  }
  const seconds = parseDuration(text)
  if (seconds === undefined)
    throw new UsageError([`${flag}: ${quoted(text)} must be a duration such as 90s, 15m, 12h, 7d or 2w`])
  return seconds
}

/** Parses a lifetime. Rejects 0, which the server would take as unlimited (D18, D31). */
export function readLifetime(text: string, without: string): number {
  const seconds = readDuration('--ttl', text)
  if (!seconds) throw new UsageError([`--ttl: ${quoted(text)} must be greater than zero; without --ttl ${without}`])
  return seconds
}

/** Replaces the field in the server's error by the flag: `.catch(withFlagName('--ttl', '2d', 'spec.ttl'))`. */
export const withFlagName = (flag: string, text: string | undefined, field: string) => (error: unknown) => {
  const [cause, ...others] = (error instanceof ApiError && error.status.details?.causes) || []
  if (cause?.field !== field || others.length > 0 || text === undefined) throw error
  throw new ApiError(422, 'Invalid', `${flag} ${quoted(text)}: ${cause.message}`)
}
