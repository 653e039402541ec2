// What somebody may have meant who typed words that are no command. run-command.ts asks, when all else is lost.

import { didYouMean } from '../api/nearest.ts'

/** What kubectl does and we leave to it. */
const ofKubectl = new Set(
  'annotate api-resources api-versions apply auth describe edit explain label patch replace wait'.split(' '),
)

/** `; did you mean …?`, or nothing. `names`: every command there is. */
export async function hintFor(words: readonly string[], names: readonly string[]): Promise<string> {
  const [first = '', second = ''] = words
  const meant = (name: string) => `; did you mean platform ${name}?`
  const turned = `${second} ${first}`
  if (names.includes(turned)) return meant(turned)
  if (words.length === 1 && (await isKind(first))) return meant(`list ${first}`)
  if (ofKubectl.has(first)) return meant(`kubectl ${first}`)
  const hints = [words.join(' '), words.slice(0, 2).join(' '), first].map(one =>
    didYouMean(one, names, name => `platform ${name}`),
  )
  return hints.find(Boolean) ?? ''
}

/** Loaded here alone: no other command line needs all kinds to be read. */
async function isKind(word: string): Promise<boolean> {
  const { kindWords } = await import('./kind-named.ts')
  return kindWords().includes(word)
}
