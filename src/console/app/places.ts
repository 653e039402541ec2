// The pages that are not lists of kinds, and the groups of the navigation.

import type { Kind } from '../../api/kind.ts'
import { type Group, groupOf, listPath, manyOf, shownKinds } from '../data/places.ts'
import { text } from '../text/common.ts'

/** `kind`: the kind that the place lists. */
export type Place = { readonly to: string; readonly label: string; readonly keys?: string; readonly kind?: Kind }

const shortcuts: { readonly [path: string]: string } = {
  '/': 'g h',
  '/teams': 'g t',
  '/users': 'g u',
  '/secrets': 'g s',
  '/project-secrets': 'g p',
  '/keys': 'g k',
  '/clusters': 'g c',
  '/access/why': 'g w',
  '/audit': 'g a',
  '/patches': 'g l',
}

const place = (to: string, label: string): Place => {
  const keys = shortcuts[to]
  return keys ? { to, label, keys } : { to, label }
}

const kindsIn = (group: Group) =>
  shownKinds.filter(kind => groupOf(kind) === group).map(kind => ({ ...place(listPath(kind), manyOf(kind)), kind }))

const extra: { readonly [group in Group]?: readonly Place[] } = {
  clusters: [place('/tokens/new', text.tokens), place('/patches', text.patches)],
}

export const homePlace = place('/', text.home)

export const navigation: readonly { readonly title: string; readonly places: readonly Place[] }[] = [
  ...(['share', 'people', 'clusters', 'access', 'other'] as const).map(group => ({
    title: text.groups[group],
    places: [...kindsIn(group), ...(extra[group] ?? [])],
  })),
  { title: text.groups.understand, places: [place('/access/why', text.whyPage), place('/audit', text.audit)] },
].filter(({ places }) => places.length > 0)

export const allPlaces: readonly Place[] = [homePlace, ...navigation.flatMap(({ places }) => places)]
