// Suggests the closest known word for an unknown command, flag or configuration key.

/** Longer words are not typing mistakes, and the comparison costs the product of their lengths. */
const longest = 64

/** undefined if no word is close enough. */
function nearest(word: string, known: Iterable<string>): string | undefined {
  if (word.length > longest) return undefined
  let best: string | undefined
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const one of known) {
    if (one === word) continue
    const isBeginning = word.length > 2 && one.toLowerCase().startsWith(word.toLowerCase())
    const distance = isBeginning ? 1 : distanceOf(word.toLowerCase(), one.toLowerCase(), least)
    if (distance < least) [best, least] = [one, distance]
  }
  return best
}

/** Returns `; did you mean …?`, or an empty string. */
export function didYouMean(word: string, known: Iterable<string>, write = (one: string) => one): string {
  const one = nearest(word, known)
  return one === undefined ? '' : `; did you mean ${write(one)}?`
}

/** For messages that list all choices. With a single choice, the suggestion would repeat the message. */
export const didYouMeanOneOf = (word: string, choices: readonly string[]): string =>
  choices.length > 1 ? didYouMean(word, choices) : ''

/** Edit distance with swaps of adjacent letters. Stops at `limit`. */
function distanceOf(a: string, b: string, limit: number): number {
  if (a === b) return 0
  if (a.length > longest || b.length > longest || Math.abs(a.length - b.length) >= limit) return limit
  let [before, last, row] = [[] as number[], [] as number[], Array.from({ length: b.length + 1 }, (_, at) => at)]
  for (let i = 1; i <= a.length; i++) {
    ;[before, last, row] = [last, row, [i]]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row[j] = Math.min(
        (row[j - 1] as number) + 1,
        (last[j] as number) + 1,
        (last[j - 1] as number) + (same ? 0 : 1),
        swapped ? (before[j - 2] as number) + 1 : limit,
      )
    }
  }
  return Math.min(limit, row[b.length] as number)
}
