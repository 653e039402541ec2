// Finds unknown fields and wrong types in Kubernetes objects, with the models of Kubernetes' own JavaScript client.

import * as kubernetes from '@kubernetes/client-node'

type Attribute = { readonly baseName: string; readonly type: string }
type Model = { getAttributeTypeMap(): readonly Attribute[] }

const models = kubernetes as unknown as { readonly [name: string]: Partial<Model> | undefined }

/** The problems of an object of a built-in API group in version v1. */
export function fieldProblems(object: { readonly apiVersion: string; readonly kind: string }): string[] {
  const name = `V1${object.kind}`
  return models[name]?.getAttributeTypeMap ? problemsOf(object, name, object.kind) : [`${name} is not a model`]
}

function problemsOf(value: unknown, type: string, path: string): string[] {
  const [, item] = /^Array<(.+)>$/.exec(type) ?? []
  if (item)
    return Array.isArray(value)
      ? value.flatMap((one, index) => problemsOf(one, item, `${path}[${index}]`))
      : [`${path} is not a list`]
  if (type === 'any') return []
  if (type === 'Date') return typeof value === 'string' ? [] : [`${path} is not a time`]
  if (type === 'IntOrString') return ['string', 'number'].includes(typeof value) ? [] : [`${path} is not a ${type}`]
  if (['string', 'number', 'boolean'].includes(type)) return typeof value === type ? [] : [`${path} is not a ${type}`]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path} is not an object`]
  const [, member] = /^\{ \[key: string\]: (.+); \}$/.exec(type) ?? []
  const attributes = member ? undefined : models[type]?.getAttributeTypeMap?.()
  if (!member && !attributes) return [`${path}: ${type} is not a model`]
  return Object.entries(value).flatMap(([key, one]) => {
    const of = member ?? attributes?.find(({ baseName }) => baseName === key)?.type
    return of ? problemsOf(one, of, `${path}.${key}`) : [`${path}.${key} is not a field`]
  })
}
