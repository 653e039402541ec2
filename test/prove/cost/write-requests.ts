// Every way to write an object: verbs, media types and patch types.

import { stringify } from 'yaml'
import type { Kind } from '../../../src/api/kind.ts'
import type { JsonObject } from '../../../src/api/object.ts'
import { pathOf } from '../../../src/api/paths.ts'
import type { Input } from './limits.ts'
import { writeProtobuf } from './protobuf.ts'

/**
 * `request`: a dry run, so that each request finds the same state. With a name, it writes the object of that name. undefined: the kind
 * cannot be written in this way.
 */
export type Way = { readonly name: string; request(kind: Kind, object: JsonObject, name?: string): Input | undefined }

/** The object that patches are sent to. */
export const target = 'cost-target'

export const named = (kind: Kind, object: JsonObject, name: string): JsonObject => ({
  apiVersion: kind.apiVersion,
  kind: kind.kind,
  ...object,
  metadata: { ...(object['metadata'] as JsonObject | undefined), name },
})
export const collection = (kind: Kind) =>
  `/kubernetes/management${pathOf(kind, { namespace: kind.namespaced ? namespaceOf(kind) : '' })}`
const namespaceOf = (kind: Kind) =>
  (kind.sample['metadata'] as { namespace?: string } | undefined)?.namespace ?? 'default'
const isBuiltIn = (kind: Kind) => kind.group.endsWith('.k8s.io')

export const ways: readonly Way[] = [
  createWay('create by JSON', 'application/json', JSON.stringify),
  createWay('create by YAML in blocks', 'application/yaml', object => stringify(object, { lineWidth: 0 })),
  // The comment makes it YAML: without it, the server would read JSON.
  createWay('create by YAML in one line', 'application/yaml', object => `# YAML\n${JSON.stringify(object)}`),
  createWay('create by protobuf', 'application/vnd.kubernetes.protobuf', writeProtobuf),
  patchWay('merge patch', 'application/merge-patch+json', objectBody),
  patchWay('JSON Patch', 'application/json-patch+json', (_, object) =>
    JSON.stringify(
      Object.entries(object).flatMap(([path, value]) =>
        path === 'metadata'
          ? // The name is in the URL.
            Object.entries(value as JsonObject)
              .filter(([key]) => key !== 'name')
              .map(([key, one]) => ({ op: 'add', path: `/metadata/${key}`, value: one }))
          : [{ op: 'add', path: `/${path}`, value }],
      ),
    ),
  ),
  patchWay('apply', 'application/apply-patch+yaml', objectBody, { query: 'fieldManager=cost&force=true&' }),
  patchWay('strategic merge', 'application/strategic-merge-patch+json', objectBody, { suits: isBuiltIn }),
  {
    name: 'replace',
    request: (kind, object, name) =>
      kind.stored && kind.verbs.includes('update')
        ? {
            method: 'PUT',
            url: urlOf(kind, name),
            type: 'application/json',
            body: name === undefined ? replacing(kind, object) : objectBody(kind, object, name),
          }
        : undefined,
  },
]

const urlOf = (kind: Kind, name: string | undefined, query = '') =>
  `${collection(kind)}/${name ?? target}?${query}${name === undefined ? 'dryRun=All' : ''}`

/** Any other version is a conflict, after the object was read and checked. */
const replacing = (kind: Kind, object: JsonObject) => {
  const whole = named(kind, object, target)
  return JSON.stringify({ ...whole, metadata: { ...(whole['metadata'] as JsonObject), resourceVersion: '1' } })
}

function objectBody(kind: Kind, object: JsonObject, name = target): string {
  return JSON.stringify(named(kind, object, name))
}

function createWay(name: string, type: string, write: (object: JsonObject) => string | Uint8Array | undefined): Way {
  return {
    name,
    request: (kind, object, stored) => {
      const body = write(named(kind, object, stored ?? 'cost-new'))
      const query = stored === undefined ? '?dryRun=All' : ''
      return body === undefined ? undefined : { method: 'POST', url: collection(kind) + query, type, body }
    },
  }
}

type PatchOptions = { readonly query?: string; readonly suits?: (kind: Kind) => boolean }

function patchWay(
  name: string,
  type: string,
  body: (kind: Kind, object: JsonObject, stored?: string) => string,
  { query = '', suits = () => true }: PatchOptions = {},
): Way {
  return {
    name,
    request: (kind, object, stored) =>
      kind.stored && kind.verbs.includes('patch') && suits(kind)
        ? { method: 'PATCH', url: urlOf(kind, stored, query), type, body: body(kind, object, stored) }
        : undefined,
  }
}
