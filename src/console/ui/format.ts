// Times and numbers for people, in the language and time zone of the browser. Everything goes through Intl.

/** "tomorrow" is clear; "next mo" is not. */
const words = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })
const numbers = new Intl.RelativeTimeFormat(undefined, { numeric: 'always', style: 'short' })
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const number = new Intl.NumberFormat()

const units: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
]

/** "2 min. ago", "in 4 days". */
export function ago(time: string | number | undefined, now = Date.now()): string {
  if (time === undefined || time === '') return ''
  const seconds = Math.round((millisecondsOf(time) - now) / 1000)
  if (Number.isNaN(seconds)) return String(time)
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1]
  const format = unit === 'month' || unit === 'year' ? numbers : words
  return format.format(Math.trunc(seconds / size), unit)
}

const millisecondsOf = (time: string | number | undefined): number =>
  typeof time === 'number' ? time : Date.parse(time ?? '')

/** A date with its time, in the local time zone. A text that is not a time stays as it is. */
export function dateTime(time: string | number | undefined): string {
  const at = millisecondsOf(time)
  return Number.isFinite(at) ? absolute.format(at) : String(time ?? '')
}

/** A time as fields of the type `datetime-local` show it: local, to the second. */
export function localField(time: string): string {
  const at = new Date(time)
  const local = at.getTime() - at.getTimezoneOffset() * 60_000
  return Number.isNaN(local) ? '' : new Date(local).toISOString().slice(0, 19)
}

/** The other direction: "2026-01-31T08:00" in the local time zone, as the server reads it. */
export function fromLocalField(typed: string): string {
  const at = Date.parse(typed)
  return Number.isNaN(at) ? '' : new Date(at).toISOString()
}

export const count = (value: number): string => number.format(value)

const unit = (name: string, unitDisplay: 'short' | 'long') =>
  new Intl.NumberFormat(undefined, { style: 'unit', unit: name, unitDisplay })

/** 604800 → "7 days"; 5400 → "1 hr 30 min". */
export function duration(seconds: number): string {
  const parts: string[] = []
  let rest = seconds
  for (const [name, size] of units.slice(2)) {
    const whole = Math.floor(rest / size)
    if (whole > 0) parts.push(unit(name, 'short').format(whole))
    rest -= whole * size
  }
  return parts.slice(0, 2).join(' ') || unit('second', 'short').format(0)
}

/** "1 byte", "1,024 bytes". */
export const bytes = (size: number): string => unit('byte', 'long').format(size)
