// Suggests a command for words that match none.

import { didYouMean } from '../api/did-you-mean.ts'

/** Commands that only kubectl has. */
const kubectlCommands = new Set(
  'annotate api-resources api-versions apply auth describe edit explain label patch replace wait'.split(' '),
)

/** Names of our commands in other programs. */
const synonyms = new Map<string, readonly string[]>([
  ...['rm', 'remove', 'del'].map(word => [word, ['delete']] as const),
  ...['show', 'read', 'cat'].map(word => [word, ['get']] as const),
  ...['add', 'new', 'make', 'put', 'write'].map(word => [word, ['create', 'set']] as const),
  ['ls', ['list']],
  ['signin', ['login']],
  ['signout', ['logout']],
])

/** Commands that take any kind. */
const kindCommands = new Set(['get', 'list', 'delete'])

/** Returns `; did you mean …?` or an empty string. `names` lists all commands. */
export async function hintFor(words: readonly string[], names: readonly string[]): Promise<string> {
  const [first = '', second = ''] = words
  const meant = (name: string) => `; did you mean platform ${name}?`
  const pairs = [
    [first, second],
    [second, first],
  ].flatMap(([verb = '', thing = '']) => (synonyms.get(verb) ?? [verb]).map(known => ({ verb: known, thing })))
  for (const { verb, thing } of pairs)
    for (const one of [thing, `${thing}s`, thing.replace(/s$/, '')])
      if (names.includes(`${verb} ${one}`)) return meant(`${verb} ${one}`)
  for (const { verb, thing } of pairs)
    if (kindCommands.has(verb) && thing && (await isKind(thing))) return meant(`${verb} ${thing}`)
  if (words.length === 1 && (await isKind(first))) return meant(`list ${first}`)
  if (kubectlCommands.has(first)) return meant(`kubectl ${first}`)
  const other = synonyms.get(first)?.find(verb => names.includes(verb))
  if (other) return meant(other)
  const hints = [words.join(' '), words.slice(0, 2).join(' '), first].map(one =>
    didYouMean(one, names, name => `platform ${name}`),
  )
  return hints.find(Boolean) ?? ''
}

/** Imports the kinds lazily: most invocations never need them all. */
async function isKind(word: string): Promise<boolean> {
  const { kindWords } = await import('./resolve-kind.ts')
  const known = kindWords()
  return known.includes(word) || known.includes(`${word}s`)
}
