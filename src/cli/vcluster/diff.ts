// Formats a line-by-line diff of two texts.

const CONTEXT = 3
const MAX_LINES = 3000

/** Returns an empty string if the texts are equal. */
export function diffOf(before: string, after: string): string {
  if (before === after) return ''
  const [old, next] = [before.trimEnd().split('\n'), after.trimEnd().split('\n')]
  const lines = old.length * next.length > MAX_LINES * MAX_LINES ? whole(old, next) : shortest(old, next)
  const isNear = lines.map((_, at) =>
    lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some(line => !line.startsWith(' ')),
  )
  const shown = lines.flatMap((line, at) =>
    isNear[at] ? [line] : isNear[at - 1] && at + 1 < lines.length ? ['…'] : [],
  )
  return `${shown.join('\n')}\n`
}

const whole = (old: readonly string[], next: readonly string[]) => [
  ...old.map(line => `-${line}`),
  ...next.map(line => `+${line}`),
]

/** Uses the longest common subsequence of lines. */
function shortest(old: readonly string[], next: readonly string[]): string[] {
  const width = next.length + 1
  const common = new Uint16Array((old.length + 1) * width)
  const at = (i: number, j: number) => common[i * width + j] ?? 0
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = next.length - 1; j >= 0; j--)
      common[i * width + j] = old[i] === next[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  const lines: string[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < next.length)
    if (i < old.length && j < next.length && old[i] === next[j]) {
      lines.push(` ${old[i++]}`)
      j++
    } else if (j >= next.length || (i < old.length && at(i + 1, j) >= at(i, j + 1))) lines.push(`-${old[i++]}`)
    else lines.push(`+${next[j++]}`)
  return lines
}
