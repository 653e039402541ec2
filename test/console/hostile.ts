// Hostile strings, objects that contain them in every field that the server accepts, and the check that a page shows them as text.

import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import type { Kind } from '../../src/api/kind.ts'
import { isObject, type Json, type JsonObject } from '../../src/api/object.ts'
import { pathOf } from '../../src/api/paths.ts'
import type { Schema } from '../../src/api/schema.ts'
import type { Server } from '../support/server.ts'
import type { ConsoleStage } from './stage.ts'

/** Reorders what follows, also after the end of an isolate. */
export const reversed = '\u202Egnp\u2069\u202Eexe'
export const markup =
  '"\'><img data-xss src=x onerror=ran()><script data-xss>ran()</script></style><style data-xss>*{display:none}</style>' +
  "<a data-xss href=javascript:ran()>x</a>{{constructor.constructor('ran()')()}}"

/** The first one that a field accepts is used. */
const strings = [
  `${markup}${reversed}`,
  markup,
  reversed,
  '<img data-xss src=x onerror=ran()>',
  'javascript:ran()',
  'https://elsewhere.example/x',
  'constructor',
]
const longWords = ['W'.repeat(10_000), 'W'.repeat(1000), 'W'.repeat(250), 'w'.repeat(63)]
const keys = ['__proto__', 'constructor', 'hasOwnProperty', ...strings]

type Leaf = (object: JsonObject, value: string) => JsonObject

/** Ways to put a string into every string of a schema, as a change of one more field each. */
function leavesOf(schema: Schema): readonly ((value: string) => Json)[] {
  if (schema['x-internal'] || schema.enum || schema.format === 'date-time') return []
  if (schema.type === 'string') return [value => value]
  if (schema.type === 'array') return leavesOf(schema.items ?? {}).map(leaf => value => [leaf(value)])
  const inner = schema.additionalProperties
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
      leavesOf(field).map(leaf => (value: string) => ({ [name]: leaf(value) })),
    ),
    ...(typeof inner === 'object'
      ? [
          (value: string) => Object.fromEntries([[value, 'eA==']]),
          ...leavesOf(inner).map(leaf => (value: string) => ({ hostile: leaf(value) })),
        ]
      : []),
  ]
}

/** Merges two objects. Lists of objects are merged item by item, so that a second field joins the first. */
function merged(one: Json | undefined, other: Json): Json {
  if (Array.isArray(one) && Array.isArray(other) && isObject(one[0]) && isObject(other[0]))
    return [merged(one[0], other[0]), ...one.slice(1)]
  if (Array.isArray(one) && Array.isArray(other)) return [...one, ...other]
  if (!isObject(one) || !isObject(other)) return other
  const entries = [...Object.keys(one), ...Object.keys(other)].map(key => {
    const [before, after] = [one, other].map(object => (Object.hasOwn(object, key) ? object[key] : undefined))
    return [key, after === undefined ? before : merged(before, after)]
  })
  return Object.fromEntries(entries)
}

function leaves(kind: Kind): readonly Leaf[] {
  const fields = Object.entries(kind.fields)
    .filter(([name]) => name !== 'status')
    .flatMap(([name, schema]) => leavesOf(schema).map(leaf => (value: string) => ({ [name]: leaf(value) })))
  const metadata = ['labels', 'annotations'].flatMap(name => [
    (value: string) => ({ metadata: { [name]: Object.fromEntries([[value, 'x']]) } }),
    (value: string) => ({ metadata: { [name]: { hostile: value } } }),
  ])
  return [...metadata, ...fields].map(leaf => (object, value) => merged(object, leaf(value)) as JsonObject)
}

const collection = (kind: Kind, namespace: string) => pathOf(kind, kind.namespaced ? { namespace } : {})

export type Made = { readonly name: string; readonly namespace: string; readonly fields: number }

/** Creates an object of the kind with a hostile string in every field that accepts one. `isLong`: with words of up to 10,000 characters. */
export async function makeHostile(server: Server, kind: Kind, isLong: boolean): Promise<Made> {
  const sample = kind.sample as JsonObject & { readonly metadata: { readonly namespace?: string } }
  const namespace = sample.metadata.namespace ?? ''
  const path = collection(kind, namespace)
  const accepts = async (object: JsonObject) =>
    (await server.request('POST', `${path}?dryRun=All`, { body: JSON.stringify(object) })).status === 201
  const named = (name: string) => merged(kind.sample, { metadata: { name } }) as JsonObject
  const names = isLong ? longWords : [...strings, 'hostile']
  let object = named(isLong ? 'long' : 'hostile')
  for (const name of names)
    if (await accepts(named(name))) {
      object = named(name)
      break
    }
  let fields = 0
  for (const leaf of leaves(kind))
    for (const value of isLong ? longWords : [...keys, ...strings]) {
      const next = leaf(object, value)
      if (!(await accepts(next))) continue
      object = next
      fields++
      if (!keys.slice(0, 3).includes(value)) break
    }
  const { status, text, body } = await server.request('POST', path, { body: JSON.stringify(object) })
  assert.equal(status, 201, text)
  return { name: body.metadata.name, namespace, fields }
}

/** Runs in the page, as text, because the tests have no types of the DOM. Returns what is wrong. */
const problemsInPage = `(() => {
  const problems = []
  if (window.hasRun) problems.push('a script ran')
  for (const element of document.querySelectorAll('[data-xss], iframe, object, embed, frame'))
    problems.push('element from a string: ' + element.outerHTML.slice(0, 80))
  for (const element of document.querySelectorAll('*'))
    for (const name of ['href', 'src', 'action', 'formaction', 'xlink:href', 'srcdoc', 'style']) {
      const value = element.getAttribute(name)
      if (value === null) continue
      if (name === 'style') { if (/url|expression|data-xss/.test(value)) problems.push('style ' + value); continue }
      const url = URL.parse(value, document.baseURI)
      if (!url || url.origin !== location.origin) problems.push(name + ' ' + value.slice(0, 80))
    }
  for (const element of document.querySelectorAll('*'))
    for (const { name } of element.attributes) if (/^on/i.test(name)) problems.push('handler ' + name)
  for (const element of document.querySelectorAll('[title], [aria-label], [aria-description], [placeholder], [alt]'))
    for (const { name, value } of element.attributes)
      if (/^(title|aria-.*|placeholder|alt)$/.test(name) && /[\\u202A-\\u202E\\u2066-\\u2069]/.test(value)) problems.push('reordered by ' + name + ': ' + value.slice(0, 80))
  // Text beside a name runs from left to right. Words are measured, because a long text may have several lines.
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const range = document.createRange()
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest('textarea, style')) continue
    for (const { index, 0: word } of node.data.matchAll(/[A-Za-z]{2,}/g)) {
      const at = offset => { range.setStart(node, offset); range.setEnd(node, offset + 1); return range.getBoundingClientRect() }
      const [first, last] = [at(index), at(index + word.length - 1)]
      if (first.width && first.top === last.top && first.left > last.left) problems.push('reordered: ' + word + ' in ' + node.data.slice(0, 60))
    }
  }
  const width = document.documentElement.clientWidth
  const scrolls = element => element && (getComputedStyle(element).overflowX !== 'visible' || scrolls(element.parentElement))
  if (document.documentElement.scrollWidth > width)
    for (const element of document.querySelectorAll('main *, header *'))
      if (element.getBoundingClientRect().right > width && !scrolls(element.parentElement)) problems.push('too wide: ' + element.outerHTML.slice(0, 80))
  return problems
})()`

const inits = 'window.ran = () => { window.hasRun = true }; window.onclick = null'

/** Fails unless everything that the page shows is text. */
export async function assertOnlyText(page: Page, where: string): Promise<void> {
  assert.deepEqual(await page.evaluate<readonly string[]>(problemsInPage), [], where)
}

/** Waits until nothing on the page is loading. */
export async function settled(page: Page): Promise<void> {
  await page.locator('main').waitFor()
  await page.getByText('Loading…').first().waitFor({ state: 'detached' })
}

/** A page that is signed in, and the requests that it sent to other origins. */
export async function watchedPage(stage: ConsoleStage, key?: string) {
  const context = await stage.context()
  await context.addInitScript({ content: inits })
  const strays: string[] = []
  const { origin } = new URL(stage.url)
  context.on('request', request => {
    if (new URL(request.url()).origin !== origin) strays.push(request.url())
  })
  const page = await stage.signedIn({ context, ...(key ? { key } : {}) })
  return { page, strays }
}
