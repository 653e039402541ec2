// Elements show characters that reorder text, in text and in attributes that people read or hear.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsx, jsxs } from './jsx-runtime.ts'

const hostile = 'invoice\u202Egpj.exe\u2069'
const shown = 'invoice⟨U+202E⟩gpj.exe⟨U+2069⟩'

const propsOf = (props: object): unknown => (jsx('span', props) as { readonly props: unknown }).props

test('text', () => {
  assert.deepEqual(propsOf({ children: hostile }), { children: shown })
  const { props } = jsxs('span', { children: ['a', hostile] }) as { readonly props: unknown }
  assert.deepEqual(props, { children: ['a', shown] })
})

for (const name of ['title', 'alt', 'placeholder', 'aria-label', 'aria-description', 'aria-valuetext', 'textValue'])
  test(`the attribute ${name}`, () => {
    assert.deepEqual(propsOf({ [name]: hostile }), { [name]: shown })
  })

test('values, addresses and identifiers stay as they are', () => {
  const props = { value: hostile, href: hostile, id: hostile, 'aria-controls': hostile, hidden: true }
  assert.deepEqual(propsOf(props), props)
})
