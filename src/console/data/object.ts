// One object: read once, and read again when the shared watch says that it changed.

import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Ref, Resource } from '../../api/object.ts'
import { pathOf } from '../../api/paths.ts'
import { type Document, documentOf, type Resources } from '../../api/resources.ts'
import { useRows } from './rows.ts'
import { getJson, server } from './server.ts'

/** Kinds with sealed fields are read without them, unless somebody asks for a value. */
const isSealed = (kind: Kind) => kind.keepsLastRead

/** A secret with the names of its keys, but without values. This is not a recorded read. */
export async function readMasked(kind: Kind, ref: Ref): Promise<Document> {
  return documentOf(await getJson<Resource>(`${pathOf(kind, ref)}?omitData=true`))
}

/** Reads an object the way its page shows it. */
export const readObject: Resources['get'] = (kind, ref) =>
  isSealed(kind) ? readMasked(kind, ref) : server.get(kind, ref)

export const objectKey = (kind: Kind, { namespace, name }: Ref) => ['object', kind.id, namespace, name] as const

/** Milliseconds, without a row of a live list. */
const readEvery = 15_000

export type Loaded = {
  readonly object: Resource | undefined
  readonly error: unknown
  readonly isLoading: boolean
  /** Whether the object was deleted while somebody looked at it. */
  readonly isGone: boolean
}

/** For secrets, `object` has no values: reading them is a recorded read. */
export function useObject(kind: Kind, ref: Ref): Loaded {
  const client = useQueryClient()
  const queryKey = objectKey(kind, ref)
  const { rows, state } = useRows(kind, kind.namespaced ? { namespace: ref.namespace } : {})
  const row = rows.find(({ name }) => name === ref.name)
  // It may be deleted, behind the last row that was read, or hidden from lists. The server knows.
  const isMissing = !row && state !== 'loading'
  const { data, error, isPending } = useQuery({
    queryKey,
    queryFn: async () => (await readObject(kind, ref)).object,
    refetchInterval: isMissing ? readEvery : false,
  })
  const version = row?.version
  const shown = data?.metadata.resourceVersion
  useEffect(() => {
    const isNewer = version !== undefined && shown !== undefined && BigInt(version) > BigInt(shown)
    if (isNewer || isMissing) void client.invalidateQueries({ queryKey: ['object', kind.id, ref.namespace, ref.name] })
  }, [client, kind.id, ref.namespace, ref.name, version, shown, isMissing])
  return {
    object: data,
    error,
    isLoading: isPending,
    isGone: data !== undefined && error instanceof ApiError && error.code === 404,
  }
}
