// Converts between URL paths and the addresses of objects, below /api/v1 and /apis/<group>/<version>.

/** The address of a resource, or a plain path. Names are decoded but not looked up. */
export type Address =
  | {
      readonly type: 'resource'
      readonly group: string
      readonly version: string
      readonly resource: string
      readonly namespace: string
      readonly name: string
      readonly subresource: string
      /** Segments after the subresource, such as a version of a history. */
      readonly rest: readonly string[]
      /** The deprecated `/watch/` prefix. */
      readonly watch: boolean
    }
  | { readonly type: 'path'; readonly path: string }

/** The prefix of the Kubernetes API paths (D1). */
export const prefix = '/kubernetes/management'

/** The path below the prefix, or undefined. Compares whole segments. */
export function belowPrefix(path: string): string | undefined {
  if (!path.startsWith(prefix)) return undefined
  const rest = path.slice(prefix.length)
  if (rest === '') return '/'
  return rest.startsWith('/') ? rest : undefined
}

/** Parses a path below the prefix. undefined: invalid encoding, an empty segment in the middle, or an encoded slash. */
export function parsePath(path: string): Address | undefined {
  const segments = split(path)
  if (!segments) return undefined
  const [root, ...rest] = segments
  if (root === 'api' && rest.length >= 2) return resource('', rest[0] as string, rest.slice(1)) ?? plain(path)
  if (root === 'apis' && rest.length >= 3)
    return resource(rest[0] as string, rest[1] as string, rest.slice(2)) ?? plain(path)
  return plain(path)
}

const plain = (path: string): Address => ({ type: 'path', path: path.length > 1 ? path.replace(/\/$/, '') : path })

function split(path: string): string[] | undefined {
  const parts = path.split('/')
  if (parts.shift() !== '') return undefined
  if (parts.at(-1) === '') parts.pop() // a trailing slash on a collection is valid
  if (!path.includes('%')) return parts.includes('') ? undefined : parts
  const decoded: string[] = []
  for (const part of parts) {
    const text = decode(part)
    // Kubernetes splits the path at an encoded slash and finds nothing, so it is an unknown path.
    if (!text || text.includes('/')) return undefined
    decoded.push(text)
  }
  return decoded
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

function resource(group: string, version: string, segments: readonly string[]): Address | undefined {
  const watch = segments[0] === 'watch' && segments.length > 1
  const rest = watch ? segments.slice(1) : segments
  const spaced = rest[0] === 'namespaces' && rest.length >= 3
  const namespace = spaced ? (rest[1] as string) : ''
  const [name = '', subresource = '', ...more] = spaced ? rest.slice(3) : rest.slice(1)
  const plural = (spaced ? rest[2] : rest[0]) as string
  return { type: 'resource', group, version, resource: plural, namespace, name, subresource, rest: more, watch }
}

/** The path of a collection or an object, below the prefix. */
export function pathOf(
  kind: { readonly group: string; readonly version: string; readonly plural: string },
  at: { readonly namespace?: string; readonly name?: string; readonly subresource?: string },
): string {
  const root = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`
  const space = at.namespace ? `/namespaces/${encodeURIComponent(at.namespace)}` : ''
  const name = at.name ? `/${encodeURIComponent(at.name)}` : ''
  return `${root}${space}/${kind.plural}${name}${at.subresource ? `/${at.subresource}` : ''}`
}
