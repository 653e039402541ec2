// Matches group names against patterns with * and ?.

/** Takes time proportional to the product of both lengths, unlike a regular expression with several stars. */
export function matchesPattern(pattern: string, text: string): boolean {
  let [at, position] = [0, 0]
  /** The last star, and how much of the text it covers up to. */
  let [star, covered] = [-1, 0]
  while (position < text.length) {
    const expected = pattern[at]
    if (expected === '*') {
      star = at++
      covered = position
    } else if (expected === '?' || (expected !== undefined && expected === text[position])) {
      at++
      position++
    } else if (star >= 0) {
      at = star + 1
      position = ++covered
    } else return false
  }
  while (pattern[at] === '*') at++
  return at === pattern.length
}
