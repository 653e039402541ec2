// "Did you mean": the known word that is nearest to one that is not known. Commands, flags and configuration keys ask it.

/** Longer words are nobody's typing mistake, and comparing them costs the product of their lengths. */
const longest = 64

/** undefined where nothing is near enough to be meant. */
function nearest(word: string, known: Iterable<string>): string | undefined {
  if (word.length > longest) return undefined
  let best: string | undefined
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const one of known) {
    if (one === word) continue // who said it did not mean it
    const isBeginning = word.length > 2 && one.toLowerCase().startsWith(word.toLowerCase())
    const distance = isBeginning ? 1 : distanceOf(word.toLowerCase(), one.toLowerCase(), least)
    if (distance < least) [best, least] = [one, distance]
  }
  return best
}

/** `; did you mean …?`, or nothing. */
export function didYouMean(word: string, known: Iterable<string>, write = (one: string) => one): string {
  const one = nearest(word, known)
  return one === undefined ? '' : `; did you mean ${write(one)}?`
}

/** The same behind a list of all choices: of one alone it was just said that it has to be that. */
export const amongSaid = (word: string, said: readonly string[]): string =>
  said.length > 1 ? didYouMean(word, said) : ''

/** Steps from one word to the other: a letter more, less, other, or two swapped. From `limit` on it does not count on. */
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
