// The place of each kind: the address of its pages, its group in the navigation, and its names for people.

import type { Kind } from '../../api/kind.ts'
import type { Ref } from '../../api/object.ts'
import { kinds } from '../../kinds/index.ts'
import { kindTitles } from '../text/kinds.ts'

/** The kinds that have pages: served and stored. A new kind needs no code here. */
export const shownKinds: readonly Kind[] = kinds.filter(
  kind => kind.served && kind.stored && kind.verbs.includes('list') && kind.kind !== 'Namespace',
)

const projectPrefix = 'p-'

/** Addresses that differ from `/kinds/<plural>`. */
const addresses: { readonly [id: string]: string } = {
  'sharedsecrets.management.platform.sh': '/secrets',
  'projectsecrets.management.platform.sh': '/project-secrets',
  'ownedaccesskeys.management.platform.sh': '/keys',
  'teams.management.platform.sh': '/teams',
  'users.management.platform.sh': '/users',
  'clusters.management.platform.sh': '/clusters',
  'tokenrevocations.management.platform.sh': '/tokens/revocations',
}

const groups: { readonly [id: string]: Group } = {
  'sharedsecrets.management.platform.sh': 'share',
  'projectsecrets.management.platform.sh': 'share',
  'ownedaccesskeys.management.platform.sh': 'share',
  'teams.management.platform.sh': 'people',
  'users.management.platform.sh': 'people',
  'clusters.management.platform.sh': 'clusters',
  'tokenrevocations.management.platform.sh': 'clusters',
}

export type Group = 'share' | 'people' | 'clusters' | 'access' | 'other'

const isRbac = ({ group }: Kind) => group === 'rbac.authorization.k8s.io'
export const groupOf = (kind: Kind): Group => groups[kind.id] ?? (isRbac(kind) ? 'access' : 'other')

export const listPath = (kind: Kind): string =>
  addresses[kind.id] ?? `${isRbac(kind) ? '/access' : '/kinds'}/${kind.plural}`

export function objectPath(kind: Kind, { namespace, name }: Ref, tab = ''): string {
  const inside = encodeURIComponent(namespace)
  const end = `${encodeURIComponent(name)}${tab ? `/${tab}` : ''}`
  if (kind.id === 'sharedsecrets.management.platform.sh') return `/ns/${inside}/secrets/${end}`
  if (kind.id === 'projectsecrets.management.platform.sh')
    return namespace.startsWith(projectPrefix)
      ? `/projects/${inside.slice(projectPrefix.length)}/secrets/${end}`
      : `/ns/${inside}/project-secrets/${end}`
  return kind.namespaced ? `${listPath(kind)}/${inside}/${end}` : `${listPath(kind)}/${end}`
}

export const kindNamed = (kindName: string): Kind | undefined => shownKinds.find(({ kind }) => kind === kindName)
export const kindByPlural = (plural: string): Kind | undefined => shownKinds.find(kind => kind.plural === plural)

const words = (kind: string) => kind.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase()
const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

export const oneOf = (kind: Kind): string => kindTitles[kind.kind]?.[0] ?? words(kind.kind)
export const manyOf = (kind: Kind): string => kindTitles[kind.kind]?.[1] ?? `${capital(words(kind.kind))}s`
