// What somebody may have meant who typed words that are no command. run-command.ts asks, when all else is lost.

import { didYouMean } from '../api/did-you-mean.ts'

/** What kubectl does and we leave to it. */
const ofKubectl = new Set(
  'annotate api-resources api-versions apply auth describe edit explain label patch replace wait'.split(' '),
)

/** What other programs call what we do. */
const alsoSaid = new Map<string, readonly string[]>([
  ...['rm', 'remove', 'del'].map(word => [word, ['delete']] as const),
  ...['show', 'read', 'cat'].map(word => [word, ['get']] as const),
  ...['add', 'new', 'make', 'put', 'write'].map(word => [word, ['create', 'set']] as const),
  ['ls', ['list']],
  ['signin', ['login']],
  ['signout', ['logout']],
])

/** They take any kind. */
const ofKinds = new Set(['get', 'list', 'delete'])

/** `; did you mean …?`, or nothing. `names`: every command there is. */
export async function hintFor(words: readonly string[], names: readonly string[]): Promise<string> {
  const [first = '', second = ''] = words
  const meant = (name: string) => `; did you mean platform ${name}?`
  const pairs = [
    [first, second],
    [second, first],
  ].flatMap(([verb = '', thing = '']) => (alsoSaid.get(verb) ?? [verb]).map(said => ({ said, thing })))
  for (const { said, thing } of pairs)
    for (const one of [thing, `${thing}s`, thing.replace(/s$/, '')])
      if (names.includes(`${said} ${one}`)) return meant(`${said} ${one}`)
  for (const { said, thing } of pairs)
    if (ofKinds.has(said) && thing && (await isKind(thing))) return meant(`${said} ${thing}`)
  if (words.length === 1 && (await isKind(first))) return meant(`list ${first}`)
  if (ofKubectl.has(first)) return meant(`kubectl ${first}`)
  const other = alsoSaid.get(first)?.find(said => names.includes(said))
  if (other) return meant(other)
  const hints = [words.join(' '), words.slice(0, 2).join(' '), first].map(one =>
    didYouMean(one, names, name => `platform ${name}`),
  )
  return hints.find(Boolean) ?? ''
}

/** Loaded here alone: no other command line needs all kinds to be read. */
async function isKind(word: string): Promise<boolean> {
  const { kindWords } = await import('./resolve-kind.ts')
  const known = kindWords()
  return known.includes(word) || known.includes(`${word}s`)
}
