// Resolves a kind from a word of the command line: singular, plural, short name or alias.

import { didYouMean } from '../api/did-you-mean.ts'
import type { Kind, Verb } from '../api/kind.ts'
import { UsageError } from '../host/command.ts'
import { quoted, shortened } from '../host/sanitize.ts'
import { kinds } from '../kinds/index.ts'

/** Short names that only the command line knows. */
const aliases: { readonly [word: string]: string } = {
  secret: 'sharedsecret',
  secrets: 'sharedsecret',
  accesskey: 'ownedaccesskey',
  accesskeys: 'ownedaccesskey',
  key: 'ownedaccesskey',
  keys: 'ownedaccesskey',
  token: 'directclusterendpointtoken',
  tokens: 'directclusterendpointtoken',
}

const wordsOf = ({ singular, plural, shortNames, id }: Kind) => [singular, plural, ...shortNames, id]

/** Served kinds that support the verb. */
const kindsWith = (verb: Verb) => kinds.filter(kind => kind.served && kind.verbs.includes(verb))

/** `secret` with a project means a ProjectSecret. */
function find(word: string, project: string | undefined): Kind | undefined {
  const plain = word.toLowerCase()
  const name = project !== undefined && /^secrets?$/.test(plain) ? 'projectsecret' : (aliases[plain] ?? plain)
  return kinds.find(kind => kind.served && wordsOf(kind).includes(name))
}

/** Kind names for shell completion. */
export const kindWords = (): string[] => [
  ...kinds.filter(kind => kind.served && kind.verbs.includes('list')).map(({ plural }) => plural),
  'secrets',
  'accesskeys',
]

/** Resolves a kind regardless of its verbs. Throws UsageError. */
export function anyKind(word: string, project?: string): Kind {
  return find(word, project) ?? kindNamed(word, 'create', project)
}

/** Accepts KIND NAME…, or KIND/NAME… as printed by -o name. The second form must be used for all, with one kind. Throws UsageError. */
export function readNames([word = '', ...rest]: readonly string[], project: string | undefined) {
  if (!word.includes('/')) return { word, names: rest }
  const all = [word, ...rest]
  const wrong = all.filter(one => !/^[^/]+\/[^/]+$/.test(one))
  if (wrong.length) throw new UsageError(wrong.map(one => `${quoted(one)} must be KIND/NAME, like the others`))
  const [kind = ''] = word.split('/')
  const other = rest.find(one => find(one.split('/')[0] ?? '', project) !== find(kind, project))
  if (other !== undefined)
    throw new UsageError([
      `${shortened(word)} and ${shortened(other)} are of different kinds: use one kind per command`,
    ])
  return { word: kind, names: all.map(one => one.split('/')[1] ?? '') }
}

/** Some kinds are not stored: the server only answers a create, so no other verb works on them. */
const unsupportedVerb = ({ plural, stored, verbs, kind }: Kind, verb: Verb) =>
  stored || !verbs.includes('create')
    ? `${plural} do not support ${verb}`
    : `${plural} are not stored, so there is nothing to ${verb}${kind === 'DirectClusterEndpointToken' ? ': platform create token creates one' : ''}`

/** Throws UsageError. */
export function kindNamed(word: string, verb: Verb, project?: string): Kind {
  const found = find(word, project)
  const supported = kindsWith(verb)
  if (found && supported.includes(found)) return found
  const known = [...supported.flatMap(wordsOf), ...Object.keys(aliases)]
  const names = supported.map(({ plural }) => plural).join(', ')
  throw new UsageError([
    found
      ? unsupportedVerb(found, verb)
      : `unknown kind ${quoted(word)}${didYouMean(word, known) || `; known kinds: ${names}`}`,
  ])
}
