// Bodies that are costly by their shape, not by one field of a schema: deep, wide, escaped, repeated, and patches of many operations.

import type { Json, JsonObject } from '../../../src/api/object.ts'
import type { Input } from './limits.ts'

/** `make(share)`: the body at that share of the limits of a body. */
export type Shape = { readonly what: string; make(share: number): Input }

const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'
const roles = '/kubernetes/management/apis/rbac.authorization.k8s.io/v1/clusterroles'

const many = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: Math.floor(count) }, (_, at) => make(at))
const deep = (levels: number, inside: string) => `${'{"a":'.repeat(levels)}${inside}${'}'.repeat(levels)}`
const mapOf = (keys: number) => JSON.stringify(Object.fromEntries(many(keys, at => [`k${at}`, 0])))
const pointer = (levels: number) => '/a'.repeat(levels)
const limits = {
  values: 45_000,
  keys: 24_000,
  bytes: 3_000_000,
  yaml: 780_000,
  operations: 9_900,
  levels: 96,
  segments: 59_000,
}
/** This many operations with deep pointers are within the limit of segments. */
const deepOperations = limits.segments / (limits.levels + 2)

/** Values of a field that no schema has. */
const texts: { readonly [what: string]: (share: number) => string } = {
  'a list of small values': share => JSON.stringify(many(limits.values * share, () => 0)),
  'far more small values than a body may hold': share => JSON.stringify(many(1_400_000 * share, () => 0)),
  'a map of many keys': share => mapOf(limits.keys * share),
  'far more keys than a body may hold': share => mapOf(200_000 * share),
  'many maps with different keys': share =>
    JSON.stringify(many((limits.values / 11) * share, at => Object.fromEntries(many(10, key => [`k${at}-${key}`, 0])))),
  'many maps inside of each other': share => `[${many((limits.values / 90) * share, () => deep(90, '0')).join(',')}]`,
  'many empty maps': share => JSON.stringify(many(limits.values * share, () => ({}))),
  'the same key again and again': share => `{${many(limits.values * share, () => '"key":0').join(',')}}`,
  'long keys, each twice': share => {
    const key = (at: number) => `"${at}${'k'.repeat(1000)}":0`
    return `{${many((limits.bytes / 2100) * share, at => `${key(at)},${key(at)}`).join(',')}}`
  },
  'a text of escapes': share => `"${'\\u0001'.repeat((limits.bytes / 6) * share)}"`,
  'a text of short escapes': share => `"${'\\n'.repeat((limits.bytes / 2) * share)}"`,
  'a text of escaped quotes': share => `"${'\\"'.repeat((limits.bytes / 2) * share)}"`,
  'a text that ends with an invalid escape': share => `"${'\\n'.repeat((limits.bytes / 2) * share)}\\x"`,
  'a text that does not end': share => `"${'\\"'.repeat((limits.bytes / 2) * share)}`,
  'many texts with one escape': share => JSON.stringify(many(limits.values * share, () => 'text\n')),
  'long numbers': share => `[${many((limits.bytes / 60) * share, () => `0.${'1'.repeat(56)}`).join(',')}]`,
  'a text that is not ASCII': share => JSON.stringify('ü€'.repeat((limits.bytes / 5) * share)),
  'white space': share => `${' '.repeat(limits.bytes * share)}0`,
}

/** Values that only YAML has. */
const yamlTexts: { readonly [what: string]: (share: number) => string } = {
  'a plain text': share => 'x'.repeat(limits.yaml * share),
  'plain words': share => 'x '.repeat((limits.yaml / 2) * share),
  'a plain text of many lines': share => `${'x'.repeat(75)}\n    `.repeat((limits.yaml / 81) * share),
  'a text in double quotes': share => `"${'x'.repeat(limits.yaml * share)}"`,
  'escapes in double quotes': share => `"${'\\u0001'.repeat((limits.yaml / 6) * share)}"`,
  'quotes in single quotes': share => `'${"''".repeat((limits.yaml / 2) * share)}'`,
  'a long number': share => '1'.repeat(limits.yaml * share),
  'a long fraction': share => `0.${'1'.repeat(limits.yaml * share)}`,
  'a block of lines': share => `|\n${'    text\n'.repeat((limits.yaml / 79) * share)}`,
  'many aliases': share =>
    `\n    - &a [${many(480, () => '0').join(', ')}]\n${many(90 * share, () => '    - *a\n').join('')}`,
}

const patches: { readonly [what: string]: (share: number) => Json } = {
  'the same test': share =>
    many(limits.operations * share, () => ({ op: 'test', path: '/spec/description', value: 'x' })),
  'replaced texts': share =>
    many(limits.operations * share, at => ({ op: 'replace', path: '/spec/description', value: `x${at}` })),
  'added keys': share => many(limits.operations * share, at => ({ op: 'add', path: `/spec/k${at}`, value: 'x' })),
  'added and removed keys': share =>
    many(limits.operations * share, at => ({ op: at % 2 ? 'remove' : 'add', path: '/spec/other', value: 'x' })),
  moves: share =>
    many(limits.operations * share, at =>
      at % 2
        ? { op: 'move', from: '/spec/other', path: '/spec/description' }
        : { op: 'move', from: '/spec/description', path: '/spec/other' },
    ),
  copies: share =>
    many(limits.operations * share, at => ({ op: 'copy', from: '/spec/description', path: `/spec/k${at}` })),
  'copies of a list': share =>
    many(limits.operations * share, () => ({ op: 'copy', from: '/spec/users', path: '/spec/other' })),
  'the front of a list': share =>
    many(limits.operations * share, at => ({ op: at % 2 ? 'remove' : 'add', path: '/spec/users/0', value: 'x' })),
  'the front of a long list': share => [
    { op: 'add', path: '/spec/users', value: many(15_000 * share, at => `u${at}`) },
    ...many(limits.operations * share * 0.6, at => ({
      op: at % 2 ? 'remove' : 'add',
      path: '/spec/users/0',
      value: 'x',
    })),
  ],
  'tests of a wide map': share => [
    { op: 'add', path: '/spec/wide', value: Object.fromEntries(many(10_000 * share, at => [`k${at}`, 0])) },
    ...many(limits.operations * share, () => ({ op: 'test', path: '/spec/wide', value: { k0: 0 } })),
  ],
  'pointers of six segments': share => [
    { op: 'add', path: '/spec/deep', value: JSON.parse(deep(4, '0')) as Json },
    ...many(limits.operations * share, at => ({ op: 'replace', path: `/spec/deep${pointer(4)}`, value: at })),
  ],
  'deep pointers': share => [
    { op: 'add', path: '/spec/deep', value: JSON.parse(deep(limits.levels, '0')) as Json },
    ...many(limits.operations * share, at => ({
      op: 'replace',
      path: `/spec/deep${pointer(limits.levels)}`,
      value: at,
    })),
  ],
  'deep tests': share => [
    { op: 'add', path: '/spec/deep', value: JSON.parse(deep(limits.levels, '0')) as Json },
    ...many(limits.operations * share, () => ({ op: 'test', path: `/spec/deep${pointer(limits.levels)}`, value: 0 })),
  ],
  'deep moves': share => [
    { op: 'add', path: '/spec/deep', value: JSON.parse(deep(limits.levels, '{"b":0}')) as Json },
    ...many((limits.operations / 2) * share, at => {
      const [from, path] = at % 2 ? ['c', 'b'] : ['b', 'c']
      const inside = `/spec/deep${pointer(limits.levels)}`
      return { op: 'move', from: `${inside}/${from}`, path: `${inside}/${path}` }
    }),
  ],
  'deep pointers within the limit': share => [
    { op: 'add', path: '/spec/deep', value: JSON.parse(deep(limits.levels, '0')) as Json },
    ...many(deepOperations * share, at => ({ op: 'replace', path: `/spec/deep${pointer(limits.levels)}`, value: at })),
  ],
  'very long pointers within the limit': share =>
    many((limits.segments / 1481) * share, () => ({ op: 'add', path: `/spec${'/a'.repeat(1480)}`, value: 0 })),
  'very long pointers': share =>
    many((limits.bytes / 3000) * share, () => ({ op: 'add', path: `/spec${'/a'.repeat(1480)}`, value: 0 })),
  'pointers with escapes': share =>
    many((limits.bytes / 400) * share, () => ({ op: 'add', path: `/spec/${'~1'.repeat(180)}`, value: 0 })),
  'operations with unknown members': share =>
    many(limits.operations * share, at => ({ op: 'test', path: '/spec/description', value: 'x', [`k${at}`]: 0 })),
}

/** Directives of a strategic merge, and the two lists that it merges item by item. */
const directives: { readonly [what: string]: (share: number) => JsonObject } = {
  finalizers: share => ({ metadata: { finalizers: many(limits.values * share, at => `f.example/${at}`) } }),
  'owner references': share => ({
    metadata: { ownerReferences: many((limits.values / 2) * share, at => ({ uid: `u${at}` })) },
  }),
  'deleted finalizers': share => ({
    metadata: {
      finalizers: many((limits.values / 2) * share, at => `f.example/${at}`),
      '$deleteFromPrimitiveList/finalizers': many((limits.values / 2) * share, at => `f.example/${at}`),
    },
  }),
  'retained keys': share => ({
    metadata: { $retainKeys: many((limits.values / 2) * share, at => `k${at}`) },
  }),
}

export const shapes: readonly Shape[] = [
  ...Object.entries(texts).flatMap(([what, text]) =>
    Object.entries({
      'create by JSON': (value: string): Input => ({
        method: 'POST',
        url: `${teams}?dryRun=All`,
        type: 'application/json',
        body: `{"metadata":{"name":"cost-new"},"spec":{"unknown":${value}}}`,
      }),
      'create by YAML': (value: string): Input => ({
        method: 'POST',
        url: `${teams}?dryRun=All`,
        type: 'application/yaml',
        body: `# YAML\n{"metadata":{"name":"cost-new"},"spec":{"unknown":${value}}}`,
      }),
      'merge patch': (value: string): Input => ({
        method: 'PATCH',
        url: `${teams}/cost-target?dryRun=All`,
        type: 'application/merge-patch+json',
        body: `{"spec":{"unknown":${value}}}`,
      }),
      apply: (value: string): Input => ({
        method: 'PATCH',
        url: `${teams}/cost-target?dryRun=All&fieldManager=cost`,
        type: 'application/apply-patch+yaml',
        body: `{"apiVersion":"management.platform.sh/v1","kind":"Team","metadata":{"name":"cost-target"},"spec":{"unknown":${value}}}`,
      }),
    }).map(([way, request]): Shape => ({ what: `${what} by ${way}`, make: share => request(text(share)) })),
  ),
  ...Object.entries(yamlTexts).map(
    ([what, text]): Shape => ({
      what: `${what} by create by YAML`,
      make: share => ({
        method: 'POST',
        url: `${teams}?dryRun=All`,
        type: 'application/yaml',
        body: `metadata: {name: cost-new}\nspec:\n  description: ${text(share)}\n`,
      }),
    }),
  ),
  ...Object.entries(patches).map(
    ([what, make]): Shape => ({
      what: `${what} by JSON Patch`,
      make: share => ({
        method: 'PATCH',
        url: `${teams}/cost-target?dryRun=All`,
        type: 'application/json-patch+json',
        body: JSON.stringify(make(share)),
      }),
    }),
  ),
  ...Object.entries(directives).map(
    ([what, make]): Shape => ({
      what: `${what} by strategic merge`,
      make: share => ({
        method: 'PATCH',
        url: `${roles}/cost-target?dryRun=All`,
        type: 'application/strategic-merge-patch+json',
        body: JSON.stringify(make(share)),
      }),
    }),
  ),
]
