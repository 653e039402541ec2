// The kind that a word of the command line means. Every command on objects of any kind asks; it loads them all.

import { didYouMean } from '../api/did-you-mean.ts'
import type { Kind, Verb } from '../api/kind.ts'
import { UsageError } from '../host/command.ts'
import { quoted, shortened } from '../host/sanitize.ts'
import { kinds } from '../kinds/index.ts'

/** What people say instead of the kind's own name. */
const alsoCalled: { readonly [word: string]: string } = {
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

/** Kinds that this server has and that can be asked so. */
const kindsWith = (verb: Verb) => kinds.filter(kind => kind.served && kind.verbs.includes(verb))

/** `secret` with a project means a ProjectSecret. */
function look(word: string, project: string | undefined): Kind | undefined {
  const plain = word.toLowerCase()
  const name = project !== undefined && /^secrets?$/.test(plain) ? 'projectsecret' : (alsoCalled[plain] ?? plain)
  return kinds.find(kind => kind.served && wordsOf(kind).includes(name))
}

/** Words for kinds, for a shell to offer. */
export const kindWords = (): string[] => [
  ...kinds.filter(kind => kind.served && kind.verbs.includes('list')).map(({ plural }) => plural),
  'secrets',
  'accesskeys',
]

/** A kind to ask questions about, whatever its verbs. Throws UsageError. */
export function anyKind(word: string, project?: string): Kind {
  return look(word, project) ?? kindNamed(word, 'create', project)
}

/** KIND NAME…, or KIND/NAME…, as people copy it from what was printed: then all of them, and of one kind. Throws UsageError. */
export function readNames([word = '', ...rest]: readonly string[], project: string | undefined) {
  if (!word.includes('/')) return { word, names: rest }
  const all = [word, ...rest]
  const wrong = all.filter(one => !/^[^/]+\/[^/]+$/.test(one))
  if (wrong.length) throw new UsageError(wrong.map(one => `${quoted(one)} must be KIND/NAME, as the others are`))
  const [kind = ''] = word.split('/')
  const other = rest.find(one => look(one.split('/')[0] ?? '', project) !== look(kind, project))
  if (other !== undefined)
    throw new UsageError([`one kind at a time: ${shortened(word)} and ${shortened(other)} are of two`])
  return { word: kind, names: all.map(one => one.split('/')[1] ?? '') }
}

/** What is made for who asks, and kept by nobody, has nothing else to offer. */
const unasked = ({ plural, stored, verbs, kind }: Kind, verb: Verb) =>
  stored || !verbs.includes('create')
    ? `${plural} cannot be asked to ${verb}`
    : `${plural} are not kept, so that there is nothing to ${verb}${kind === 'DirectClusterEndpointToken' ? ': platform create token makes one' : ''}`

/** Throws UsageError. */
export function kindNamed(word: string, verb: Verb, project?: string): Kind {
  const found = look(word, project)
  const those = kindsWith(verb)
  if (found && those.includes(found)) return found
  const known = [...those.flatMap(wordsOf), ...Object.keys(alsoCalled)]
  const names = those.map(({ plural }) => plural).join(', ')
  throw new UsageError([
    found ? unasked(found, verb) : `${quoted(word)} is no kind${didYouMean(word, known) || `; there are: ${names}`}`,
  ])
}
