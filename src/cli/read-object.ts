// Reads one Endpoints from a file that a command was given. Used by `vcluster patch` and `vcluster test`.

import { DecodeError } from '../api/json-reader.ts'
import { isObject, type Json, type JsonObject } from '../api/object.ts'
import { decodeYamlFile } from '../api/yaml-codec.ts'
import { type Io, UsageError } from '../host/command.ts'
import { objectProblem } from '../vcluster/sync/validate-endpoints.ts'

/** `virtual`: it is one of the virtual cluster, and in that namespace where it names none. Throws UsageError with the file and what is wrong with it. */
export async function readObject(
  file: string,
  io: Io,
  virtual?: { readonly namespace: string | undefined },
): Promise<JsonObject> {
  const value = placed(await readValue(file, io), virtual?.namespace)
  const problem = problemOf(value, virtual ? ', or say --object-namespace NS' : '')
  if (problem !== undefined) throw new UsageError([`${file}: ${problem}`])
  return value as JsonObject
}

function placed(value: Json, namespace: string | undefined): Json {
  if (namespace === undefined || !isObject(value) || !isObject(value['metadata'])) return value
  return { ...value, metadata: { ...value['metadata'], namespace: value['metadata']['namespace'] ?? namespace } }
}

async function readValue(file: string, io: Io): Promise<Json> {
  const bytes = await io.readFile(file).catch((error: Error) => {
    throw new UsageError([error.message])
  })
  try {
    const { value, duplicates } = decodeYamlFile(bytes)
    if (duplicates.length) throw new UsageError(duplicates.map(one => `${file}: ${one}`))
    return value
  } catch (error) {
    if (error instanceof DecodeError) throw new UsageError([`${file}: ${error.message}`])
    throw error
  }
}

function problemOf(value: Json, otherwise: string): string | undefined {
  if (!isObject(value)) return 'expected one object'
  if (value['apiVersion'] !== 'v1' || value['kind'] !== 'Endpoints')
    return 'expected apiVersion: v1 and kind: Endpoints; that is what is synced and patched'
  const metadata = value['metadata']
  if (!isObject(metadata) || typeof metadata['name'] !== 'string' || typeof metadata['namespace'] !== 'string')
    return `metadata.name and metadata.namespace must be there: names on the other side are made from them${otherwise}`
  return objectProblem(value)
}
