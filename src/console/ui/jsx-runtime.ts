// Creates every element of the console. Characters that reorder the text around them become visible, because names and
// values come from others: CSS cannot contain them, since one of them also ends an isolate.

import type { ReactNode } from 'react'
import { jsx as create, jsxs as createMany, Fragment } from 'react/jsx-runtime'

export type { JSX } from 'react/jsx-runtime'
export { Fragment }

const reordering = /[\u202A-\u202E\u2066-\u2069]/g
const nameOf = (character: string) => `⟨U+${character.charCodeAt(0).toString(16).toUpperCase()}⟩`

type Props = { readonly children?: ReactNode }

const shown = (child: ReactNode): ReactNode =>
  typeof child === 'string' ? child.replace(reordering, nameOf) : Array.isArray(child) ? child.map(shown) : child

const withShown = (props: Props): Props =>
  props.children === undefined ? props : { ...props, children: shown(props.children) }

export const jsx: typeof create = (type, props, key) => create(type, withShown(props as Props), key)
export const jsxs: typeof createMany = (type, props, key) => createMany(type, withShown(props as Props), key)
