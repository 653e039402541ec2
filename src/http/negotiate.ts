// Content negotiation: JSON or YAML, as objects, as a Table or as metadata only (wire §1.6).

import { notAcceptable } from '../api/errors.ts'

export type View = {
  readonly format: 'json' | 'yaml'
  readonly as: 'object' | 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList'
  /** Version of meta.k8s.io the view is written in. */
  readonly version: 'v1' | 'v1beta1'
}

export type Shape = 'object' | 'list' | 'watch'

export function shapeOf(verb: string): Shape {
  return verb === 'watch' ? 'watch' : verb === 'list' || verb === 'deletecollection' ? 'list' : 'object'
}

export const plain: View = { format: 'json', as: 'object', version: 'v1' }

const formats: ReadonlyMap<string, View['format']> = new Map([
  ['application/json', 'json'],
  ['application/yaml', 'yaml'],
  ['application/*', 'json'],
  ['*/*', 'json'],
])
const accepted = ['application/json', 'application/yaml']

/** The common headers, which need no parsing. */
export const isPlain = (accept: string | undefined): boolean =>
  accept === undefined || accept === '' || accept === 'application/json' || accept === '*/*'

/** The first entry we can answer; entries we cannot are passed over, as in protobuf,json. */
export function negotiate(accept: string | undefined, shape: Shape): View {
  if (isPlain(accept)) return plain
  for (const entry of entries(accept ?? '')) {
    const view = read(entry)
    if (view && fits(view, shape)) return view
  }
  throw notAcceptable(shape === 'watch' ? ['application/json;stream=watch'] : accepted)
}

type Entry = { readonly type: string; readonly parameters: ReadonlyMap<string, string>; readonly q: number }

function entries(accept: string): Entry[] {
  const all = accept
    .slice(0, 4096)
    .split(',')
    .map(part => {
      const [type = '', ...rest] = part.split(';').map(piece => piece.trim())
      const parameters = new Map(rest.map(piece => piece.split('=', 2) as [string, string]))
      const q = Number(parameters.get('q') ?? 1)
      return { type: type.toLowerCase(), parameters, q: Number.isFinite(q) ? q : 0 }
    })
  return all.filter(entry => entry.q > 0).sort((one, other) => other.q - one.q)
}

function read({ type, parameters }: Entry): View | undefined {
  const format = formats.get(type)
  if (!format) return undefined
  const as = parameters.get('as')
  if (as === undefined) return parameters.has('g') ? undefined : { format, as: 'object', version: 'v1' }
  const version = parameters.get('v')
  if (parameters.get('g') !== 'meta.k8s.io' || (version !== 'v1' && version !== 'v1beta1')) return undefined
  return as === 'Table' || as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList'
    ? { format, as, version }
    : undefined
}

function fits(view: View, shape: Shape): boolean {
  if (shape === 'watch') return view.format === 'json' && view.as !== 'PartialObjectMetadataList'
  if (view.as === 'PartialObjectMetadata') return shape === 'object'
  return view.as !== 'PartialObjectMetadataList' || shape === 'list'
}
