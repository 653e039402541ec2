// Formats figures for the table of the proof.

const format = new Intl.NumberFormat('en')

export const say = (value: number): string => format.format(Math.round(value))

export const counted = (many: number, one: string, more = `${one}s`): string =>
  `${say(many)} ${Math.round(many) === 1 ? one : more}`
