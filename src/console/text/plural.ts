// Numbers with their noun.

import { count } from '../ui/format.ts'

/** "1 key", "2 keys". */
export const counted = (number: number, one: string, many: string): string =>
  `${count(number)} ${number === 1 ? one : many}`
