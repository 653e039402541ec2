// The equivalent command of a page. The console does nothing that these cannot do.

import type { Kind } from '../../api/kind.ts'
import type { Ref } from '../../api/object.ts'

const invisible = /[\p{Cc}\p{Cf}]/gu
const code = (character: string) => `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, '0')}`

/** One word of a shell. Invisible characters are escaped, so that a copied command is what it looks like. */
function quoted(word: string): string {
  if (/^[\w.,:=@/-]+$/.test(word)) return word
  if (word.search(invisible) === -1) return `'${word.replaceAll("'", "'\\''")}'`
  // Without an escaped quote: a shell that does not know $'' would end the word there.
  return `$'${word.replaceAll('\\', '\\\\').replaceAll("'", '\\x27').replace(invisible, code)}'`
}

type Listed = { readonly namespace?: string | undefined; readonly labelSelector?: string }

export function listCommand(kind: Kind, { namespace, labelSelector }: Listed = {}): string {
  const where = kind.namespaced ? (namespace ? ` -n ${quoted(namespace)}` : ' -A') : ''
  return `kubectl get ${kind.plural}${where}${labelSelector ? ` -l ${quoted(labelSelector)}` : ''}`
}

export function getCommand(kind: Kind, { namespace, name }: Ref, isYaml = false): string {
  const where = kind.namespaced ? ` -n ${quoted(namespace)}` : ''
  return `kubectl get ${kind.singular} ${quoted(name)}${where}${isYaml ? ' -o yaml' : ''}`
}

export const deleteCommand = (kind: Kind, { namespace, name }: Ref): string =>
  `kubectl delete ${kind.singular} ${quoted(name)}${kind.namespaced ? ` -n ${quoted(namespace)}` : ''}`

/** The namespace flag of `platform`, or the project of a project secret. */
const placeOf = (kind: Kind, { namespace }: Ref): string => {
  if (kind.kind !== 'ProjectSecret') return namespace && namespace !== 'default' ? ` -n ${quoted(namespace)}` : ''
  return ` --project ${quoted(namespace.replace(/^p-/, ''))}`
}

export const diffCommand = (kind: Kind, at: Ref, from: number, to: number): string =>
  `platform diff secret ${quoted(`${at.name}@${from}`)} ${quoted(`${at.name}@${to}`)}${placeOf(kind, at)}`

export const rollbackCommand = (kind: Kind, at: Ref, version: number): string =>
  `platform rollback secret ${quoted(`${at.name}@${version}`)}${placeOf(kind, at)}`

export const rotateCommand = (name: string, overlap: string): string =>
  `platform rotate accesskey ${quoted(name)}${overlap ? ` --overlap ${overlap}` : ''}`

type Asked = {
  readonly verb?: string
  readonly resource?: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
  readonly user?: string
  readonly who?: boolean
}

export function whyCommand({ verb = '', resource = '', subresource, namespace, name, user, who }: Asked): string {
  const words = [verb, subresource ? `${resource}/${subresource}` : resource, ...(name ? [name] : [])]
  const flags = [...(namespace ? [flag('namespace', namespace)] : []), ...(user && !who ? [flag('user', user)] : [])]
  return ['platform', who ? 'who-can' : 'why', ...flags, ...positional(words)].join(' ')
}

/** With `=`, a value that begins with a dash is still a value. */
const flag = (name: string, value: string) => `--${name}${value.startsWith('-') ? '=' : ' '}${quoted(value)}`

/** A word from an address must not become a flag. */
const positional = (words: readonly string[]) => [
  ...(words.some(word => word.startsWith('-')) ? ['--'] : []),
  ...words.map(quoted),
]

export const auditCommand = (query: { readonly [field: string]: string | undefined }): string =>
  ['platform audit search', ...Object.entries(query).map(([field, value]) => flag(field, value ?? ''))].join(' ')

export const createCommand = (kind: Kind): string => `kubectl create -f ${kind.singular}.yaml`
export const statusCommand = 'platform status'
export const tokenCommand = (seconds: string): string => `platform create token --ttl ${quoted(`${seconds}s`)}`
export const patchCommand = (isReverse: boolean): string =>
  `platform vcluster patch --server -f vcluster.yaml --object object.yaml${isReverse ? ' --reverse' : ''}`
