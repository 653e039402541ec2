// Times and numbers for people, in the language of the browser.

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })
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
  const seconds = Math.round(((typeof time === 'number' ? time : Date.parse(time)) - now) / 1000)
  if (Number.isNaN(seconds)) return String(time)
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1]
  return relative.format(Math.trunc(seconds / size), unit)
}

export const dateTime = (time: string | undefined): string => {
  const at = time === undefined ? Number.NaN : Date.parse(time)
  return Number.isNaN(at) ? (time ?? '') : absolute.format(at)
}

export const count = (value: number): string => number.format(value)

/** 604800 → "7 d". */
export function duration(seconds: number): string {
  const parts: string[] = []
  let rest = seconds
  for (const [unit, size] of [
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
    ['s', 1],
  ] as const) {
    const whole = Math.floor(rest / size)
    if (whole > 0) parts.push(`${whole} ${unit}`)
    rest -= whole * size
  }
  return parts.slice(0, 2).join(' ') || '0 s'
}

export const bytes = (size: number): string => (size === 1 ? '1 byte' : `${count(size)} bytes`)
