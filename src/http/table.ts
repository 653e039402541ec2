// Tables and bare metadata: what `kubectl get` reads instead of objects (wire §1.6).

import { badRequest } from '../api/errors.ts'
import type { Column, Kind } from '../api/kind.ts'
import type { JsonObject, Resource } from '../api/object.ts'
import type { Query } from '../serving/exchange.ts'
import type { View } from './negotiate.ts'

type Include = 'None' | 'Metadata' | 'Object'

export function includeOf(query: Query): Include {
  const value = query.get('includeObject') ?? ''
  if (value === '') return 'Metadata'
  if (value === 'None' || value === 'Metadata' || value === 'Object') return value
  throw badRequest(`unrecognized includeObject value: ${JSON.stringify(value)}; must be one of None, Metadata, Object`)
}

const nameColumn = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name must be unique within a namespace.',
  priority: 0,
}
const ageColumn = {
  name: 'Age',
  type: 'date',
  format: '',
  description: 'How long ago the object was created.',
  priority: 0,
}

function columnDefinitions(kind: Kind): JsonObject[] {
  const own = kind.columns.map(({ name, type, description, priority = 0 }) => ({
    name,
    type,
    format: '',
    description,
    priority,
  }))
  return [nameColumn, ...own, ageColumn]
}

export type TableOptions = {
  readonly kind: Kind
  readonly view: View
  readonly include: Include
  readonly now: number
  readonly lastActivity: (id: string) => number | undefined
}

/** `columns: false` for the later events of a watch, which do not repeat them. */
export function table(
  objects: readonly Resource[],
  metadata: JsonObject,
  { kind, view, include, now, lastActivity }: TableOptions,
  columns = true,
): JsonObject {
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${view.version}`,
    metadata,
    columnDefinitions: columns ? columnDefinitions(kind) : null,
    rows: objects.map(object => ({
      cells: [
        object.metadata.name ?? '',
        ...kind.columns.map(column => cell(column, column.value(object, lastActivity), now)),
        age(object.metadata.creationTimestamp, now),
      ],
      object:
        include === 'None'
          ? null
          : include === 'Object'
            ? (object as unknown as JsonObject)
            : partial(object, kind, view),
    })),
  }
}

function cell(column: Column, value: ReturnType<Column['value']>, now: number): string | number | boolean | null {
  if (column.type === 'date') return age(value as string | undefined, now)
  return value ?? (column.type === 'string' ? '' : null)
}

export function partial(object: Resource, kind: Kind, view: View): JsonObject {
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: `meta.k8s.io/${view.version}`,
    metadata: bareMetadata(object, kind) as unknown as JsonObject,
  }
}

/** Metadata must not contain secrets: annotations that the kind encrypts repeat the data (D28). */
function bareMetadata({ metadata }: Resource, { sealed }: Kind): Resource['metadata'] {
  if (!sealed.length || !metadata.annotations) return metadata
  const { annotations, ...rest } = metadata
  const shown = Object.entries(annotations).filter(([key]) => !sealed.includes(`metadata.annotations["${key}"]`))
  return shown.length ? { ...rest, annotations: Object.fromEntries(shown) } : rest
}

export function partialList(
  objects: readonly Resource[],
  metadata: JsonObject,
  { kind, view }: Pick<TableOptions, 'kind' | 'view'>,
): JsonObject {
  return {
    kind: 'PartialObjectMetadataList',
    apiVersion: `meta.k8s.io/${view.version}`,
    metadata,
    items: objects.map(object => partial(object, kind, view)),
  }
}

function age(time: string | undefined, now: number): string {
  return time === undefined ? '<unknown>' : duration(Math.max(0, now - Date.parse(time)))
}

/** As kubectl writes durations: two units while they matter. */
function duration(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000)
  const minutes = Math.floor(seconds / 60)
  const hours = Math.floor(minutes / 60)
  const days = Math.floor(hours / 24)
  const years = Math.floor(days / 365)
  const two = (big: number, one: string, small: number, other: string) =>
    small ? `${big}${one}${small}${other}` : `${big}${one}`
  if (seconds < 120) return `${seconds}s`
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's')
  if (hours < 3) return `${minutes}m`
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  if (days < 8) return two(days, 'd', hours % 24, 'h')
  if (years < 2) return `${days}d`
  return years < 8 ? two(years, 'y', days % 365, 'd') : `${years}y`
}
