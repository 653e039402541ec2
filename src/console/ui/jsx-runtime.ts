// Creates every element of the console. Characters that reorder the text around them become visible, because names and
// values come from others: CSS cannot contain them, since one of them also ends an isolate.

import type { ReactNode } from 'react'
import { jsx as create, jsxs as createMany, Fragment } from 'react/jsx-runtime'

export type { JSX } from 'react/jsx-runtime'
export { Fragment }

const reordering = /[\u202A-\u202E\u2066-\u2069]/g
const nameOf = (character: string) => `⟨U+${character.charCodeAt(0).toString(16).toUpperCase()}⟩`

type Props = { readonly [name: string]: unknown; readonly children?: ReactNode }

export const shownText = (text: string): string => text.replace(reordering, nameOf)

const shown = (child: ReactNode): ReactNode =>
  typeof child === 'string' ? shownText(child) : Array.isArray(child) ? child.map(shown) : child

/** Attributes that people read or hear. `textValue` names an item of a menu. */
const spoken = new Set([
  'title',
  'alt',
  'placeholder',
  'textValue',
  'aria-label',
  'aria-description',
  'aria-placeholder',
  'aria-roledescription',
  'aria-valuetext',
])

function withShown(props: Props): Props {
  const changed: { [name: string]: unknown } = props.children === undefined ? {} : { children: shown(props.children) }
  for (const [name, value] of Object.entries(props))
    if (typeof value === 'string' && spoken.has(name)) changed[name] = shownText(value)
  return { ...props, ...changed }
}

export const jsx: typeof create = (type, props, key) => create(type, withShown(props as Props), key)
export const jsxs: typeof createMany = (type, props, key) => createMany(type, withShown(props as Props), key)
