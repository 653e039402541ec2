// Compiles the regular expressions of `matches()`, within limits that keep a match short.
// JavaScript backtracks, unlike RE2 in Kubernetes, so a pattern such as (a+)+ could run for minutes.

const maxPattern = 256
export const maxMatchedText = 256
/** Steps of the slowest match, by a rough estimate: some ten milliseconds. */
const maxSteps = 2 ** 22

/** Returns the problem as a string if the pattern is not allowed. */
export function safePattern(pattern: string): RegExp | string {
  if (pattern.length > maxPattern) return `the pattern is longer than ${maxPattern} characters`
  const plain = withoutLiterals(pattern)
  if (/\(\?(?!:)/.test(plain)) return 'lookarounds and named groups are not supported'
  if (/\\[1-9k]/.test(pattern.replace(/\\\\/g, ''))) return 'backreferences are not supported'
  if (/\)[*+{]/.test(plain)) return 'a repeated group is not supported; repeat a single character or class'
  if (stepsOf(plain) > maxSteps)
    return 'the pattern may take too long: start it with ^, and use fewer of * + ? {} and |'
  try {
    return new RegExp(pattern, 'u')
  } catch {
    return 'the pattern is not a valid regular expression'
  }
}

/** Classes and escaped characters as one letter, because they contain no operators. */
const withoutLiterals = (pattern: string) => pattern.replace(/\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]/g, 'x')

/** Each repetition may end at every character, and each choice doubles the ways to match. */
function stepsOf(plain: string): number {
  const flat = plain.replace(/\(\?:/g, '(')
  const repetitions = flat.match(/[*+{]/g)?.length ?? 0
  const options = flat.replace(/[*+}]\?/g, '').match(/\?/g)?.length ?? 0
  const branches = flat.split('(').reduce((product, part) => product * part.split('|').length, 1)
  const starts = flat.startsWith('^') && !topLevel(flat).includes('|') ? 0 : 1
  return maxMatchedText ** (repetitions + starts) * 2 ** options * branches
}

function topLevel(flat: string): string {
  const next = flat.replace(/\([^()]*\)/g, 'x')
  return next === flat ? flat : topLevel(next)
}
