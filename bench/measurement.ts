// The result of a part of the bench: lines to print, and figures to record. run.ts uses both.

export type Figure = {
  /** Unique in the record: a newer figure of this name replaces the older one. */
  readonly name: string
  readonly value: number
  /** Follows the number: `ms`, `of bare`, `events/s`. */
  readonly unit: string
  /** The cost of the same work without anything else, measured in the same run, in the same unit. */
  readonly bare?: { readonly name: string; readonly value: number }
  /** The cost at several sizes, drawn as a curve. `value` is then its growth. */
  readonly curve?: { readonly axis: string; readonly unit: string; readonly points: readonly Point[] }
  /** Absent: a figure without a target, for explanation only. */
  readonly wanted?: number
  /** Whether the target is a minimum or a maximum. */
  readonly direction: 'at-least' | 'at-most'
  readonly note?: string
}

export type Point = { readonly at: number; readonly value: number }

export type Measured = { readonly text: string; readonly figures: readonly Figure[] }

export const median = (values: readonly number[]) =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] as number

/** undefined: no target. */
export function isMet({ value, wanted, direction }: Figure): boolean | undefined {
  if (wanted === undefined) return undefined
  return direction === 'at-least' ? value >= wanted : value <= wanted
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const fine = new Intl.NumberFormat('en', { maximumFractionDigits: 2 })
export const number = (value: number) => (Math.abs(value) >= 100 ? whole : fine).format(value)

/** `0.49 of bare`, `2.64 s`, `59,900 events/s`. */
export const told = (value: number, { unit }: Figure) => `${number(value)}${unit.startsWith('%') ? '' : ' '}${unit}`
export const toldWanted = (figure: Figure) =>
  figure.wanted === undefined ? '–' : `${figure.direction === 'at-least' ? '≥' : '≤'} ${told(figure.wanted, figure)}`

/** Rounds to the precision of a measurement. */
export const rounded = (value: number) => Number(value.toPrecision(4))
