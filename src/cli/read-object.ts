// Reads and validates one Endpoints or EndpointSlice from a file.

import { DecodeError } from '../api/json-reader.ts'
import { isObject, type Json, type JsonObject } from '../api/object.ts'
import { decodeYamlFile } from '../api/yaml-codec.ts'
import { type Io, UsageError } from '../host/command.ts'
import { inputProblem } from '../vcluster/patch/preview-input.ts'

/** `virtual.namespace` is the default for objects of the virtual cluster. Throws UsageError with the file and the problem. */
export async function readObject(
  file: string,
  io: Io,
  virtual?: { readonly namespace: string | undefined },
): Promise<JsonObject> {
  const value = withNamespace(await readValue(file, io), virtual?.namespace)
  const problem = inputProblem(value, virtual ? ', or set --object-namespace NS' : '')
  if (problem !== undefined) throw new UsageError([`${file}: ${problem}`])
  return value as JsonObject
}

function withNamespace(value: Json, namespace: string | undefined): Json {
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
